"""What attempts say about the health of their channels and supplies."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from catalog.models import Channel
from catalog.providers.types import ProviderError
from health.circuit import Evidence, Kind, Subject
from health.circuits import Piece, take
from health.effects import health_effect
from health.models import HealthEvent
from health.pressure import Press, pressed
from health.repository import Pause, locked_pressures, policies_of, pressure_of, store_pressure


@dataclass(frozen=True, slots=True)
class AttemptEvidence:
    """The one piece of an attempt: when it is generated, when it fails, or when its submission is unknown.

    Cancelled and guard-stopped attempts, failed uploads of a customer's asset and lost outputs give none."""

    attempt: str  # public id
    channel_id: int
    supply_id: int
    channel_epoch: int  # those it was created under
    supply_epoch: int
    error: ProviderError | None = None  # None: generated


def record_evidence(pieces: Sequence[AttemptEvidence], now: datetime) -> list[HealthEvent]:
    """Gives each piece to both circuits and returns the events of what changed.

    Part of the transaction that settles the attempts. A batch is one call: groups are locked first,
    then channels, then supplies, each by id, so that two batches never wait for each other in a circle."""
    policies = policies_of({one.channel_id for one in pieces}, {one.supply_id for one in pieces})
    with transaction.atomic(savepoint=False):
        _press_groups([one for one in pieces if _is_full(one.error)], now)
        events = []
        for subject in (Subject.CHANNEL, Subject.SUPPLY):
            events += take(subject, [_piece(one, subject, now) for one in pieces], policies, now)
    return events


def _piece(one: AttemptEvidence, subject: Subject, now: datetime) -> Piece:
    of_channel = subject is Subject.CHANNEL
    kind, scope, code = Kind.SUCCESS, "", ""
    if one.error:
        kind, scope = health_effect(one.error.category, one.error.scope, one.error.code)
        code = one.error.code
    return Piece(
        subject_id=one.channel_id if of_channel else one.supply_id,
        channel_id=one.channel_id,
        evidence=Evidence(
            at=now,
            kind=kind,
            epoch=one.channel_epoch if of_channel else one.supply_epoch,
            scope=scope,
            code=code,
            supply=str(one.supply_id),
        ),
        attempt=one.attempt,
        pause=_pause(one.error, now) if scope == subject else None,
    )


def _is_full(error: ProviderError | None) -> bool:
    """429 and stock, not a quota whose reset is known, and not what was never created."""
    return error is not None and error.code in ("rate_limited", "overloaded")


def _press_groups(pieces: Sequence[AttemptEvidence], now: datetime) -> None:
    """Channels of one group that are full together pause the group."""
    if not pieces:
        return
    channels = Channel.objects.filter(pk__in={one.channel_id for one in pieces})
    groups = dict(channels.exclude(capacity_group=None).values_list("pk", "capacity_group"))
    for group_id, row in locked_pressures(set(groups.values())).items():
        pressure = pressure_of(row)
        for one in pieces:
            if groups.get(one.channel_id) == group_id:
                pause = _pause(one.error, now)
                pressure = pressed(pressure, Press(now, one.channel_id), pause.until if pause else None)
        store_pressure(row, pressure)


def _pause(error: ProviderError | None, now: datetime) -> Pause | None:
    """`Retry-After` of a supply or channel; capacity before then is 0."""
    if error is None or error.scope not in ("supply", "channel") or not error.retry_after_s:
        return None
    return Pause(now + timedelta(seconds=error.retry_after_s), error.code)
