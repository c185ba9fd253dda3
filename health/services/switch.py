"""The operator's hand on a circuit: `disabled` is theirs alone, and nothing automatic leaves it."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.models import Supply
from health.circuit import Evidence, Kind, Subject
from health.circuits import Piece, named, take
from health.models import HealthEvent
from health.repository import policies_of


def disable(
    subject: Subject, subject_id: int, actor: Actor, reason: str, now: datetime
) -> HealthEvent | None:
    """Nothing new starts there until somebody enables it; attempts at the provider go on being polled.

    None: it was disabled already."""
    return _switch(subject, subject_id, Kind.DISABLE, "disable", actor, reason, now)


def enable(
    subject: Subject,
    subject_id: int,
    actor: Actor,
    reason: str,
    now: datetime,
    *,
    as_healthy: bool = False,
) -> HealthEvent | None:
    """It is probed first, unless the operator says `as_healthy`. None: it was not disabled."""
    kind = Kind.ENABLE_HEALTHY if as_healthy else Kind.ENABLE
    return _switch(subject, subject_id, kind, "enable", actor, reason, now)


def probe_now(
    subject: Subject, subject_id: int, actor: Actor, reason: str, now: datetime
) -> HealthEvent | None:
    """Ends the cooldown of an open circuit: one attempt may try it. None: it is not open."""
    return _switch(subject, subject_id, Kind.PROBE, "probe", actor, reason, now)


def _switch(
    subject: Subject,
    subject_id: int,
    kind: Kind,
    verb: str,
    actor: Actor,
    reason: str,
    now: datetime,
) -> HealthEvent | None:
    channel_id = subject_id
    if subject is Subject.SUPPLY:
        channel_id = Supply.objects.values_list("channel_id", flat=True).get(pk=subject_id)
    piece = Piece(subject_id, channel_id, Evidence(now, kind), actor=actor.name, reason=reason)
    with transaction.atomic():
        events = take(subject, [piece], policies_of([channel_id], [subject_id]), now)
        for event in events:
            change = Change(
                f"{verb} {subject} health",
                named(subject, subject_id)[0],
                {"state": event.from_state},
                {"state": event.to_state, "reason": reason},
            )
            record(actor, change, now)
    return events[0] if events else None
