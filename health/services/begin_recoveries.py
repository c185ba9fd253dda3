"""The reconciler's look at open circuits: those whose cooldown has passed are probed."""

from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.db.models import F, Value

from health.circuit import Evidence, Kind, State, Subject
from health.circuits import Piece, take
from health.models import ChannelHealth, HealthEvent, SupplyHealth
from health.repository import policies_of


def begin_recoveries(now: datetime, account_passes: Callable[[int], bool]) -> list[HealthEvent]:
    """Opens each due circuit for one probe, or starts its cooldown again, and returns the events.

    `account_passes(channel id)` is the adapter's free account check, true where it has none: a customer's
    attempt is never spent on a key known to be bad. It may use the network, so call this outside of any
    transaction; it is asked once a channel."""
    answers: dict[int, bool] = {}
    events = []
    for subject, subject_id, channel_id in _due(now):
        if channel_id not in answers:
            answers[channel_id] = account_passes(channel_id)
        kind = Kind.TICK if answers[channel_id] else Kind.CHECK_FAILED
        piece = Piece(subject_id, channel_id, Evidence(now, kind))
        with transaction.atomic():
            events += take(Subject(subject), [piece], policies_of([channel_id], [subject_id]), now)
    return events


def _due(now: datetime) -> list[tuple[str, int, int]]:
    """Subject, its id, and the channel to ask; channels first."""
    due = {"state": State.CIRCUIT_OPEN, "cooldown_until__lte": now}
    channels = ChannelHealth.objects.filter(**due).values_list(Value("channel"), "pk", "pk")
    supplies = SupplyHealth.objects.filter(**due).values_list(Value("supply"), "pk", F("supply__channel"))
    return list(channels.union(supplies, all=True))
