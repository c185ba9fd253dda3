"""How full groups, channels and supplies were in the last day, and how soon they are full."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

from dispatch.capacity import Kind
from dispatch.filling import WINDOW, Flow, time_to_full
from dispatch.hours import HOUR, hour_of
from dispatch.models import PeakOfSlots
from dispatch.queries.places import ChannelNow, GroupNow, Key, Slots

HOURS: Final = 24
MOST: Final = 5_000  # of each supply in the window: the cost is bounded by the catalogue

_FLOW = """
SELECT supply.id,
       (SELECT count(*) FROM (
           SELECT FROM dispatch_attempt WHERE supply_id = supply.id
               AND request_started_at > %(since)s AND request_started_at <= %(now)s
           ORDER BY request_started_at DESC LIMIT %(most)s) AS sent),
       (SELECT count(*) FROM (
           SELECT FROM dispatch_attempt WHERE supply_id = supply.id
               AND finished_at > %(since)s AND finished_at <= %(now)s AND request_started_at IS NOT NULL
           ORDER BY finished_at DESC LIMIT %(most)s) AS ended)
FROM unnest(%(supplies)s::bigint[]) AS supply(id)"""


@dataclass(frozen=True, slots=True)
class Fullness:
    """`peak`: slots taken at most in the last 24 hours, None where none was seen. `full_in`: None while it
    does not fill up; zero: it is full. `is_closed`: by its circuit or a switch, whatever is free."""

    peak: int | None
    peak_at: datetime | None
    full_in: timedelta | None
    is_closed: bool

    @property
    def is_full(self) -> bool:
        return self.full_in == timedelta(0)


def fullness(
    channels: Sequence[ChannelNow], groups: Sequence[GroupNow], now: datetime
) -> Mapping[Key, Fullness]:
    """By kind and id; two queries."""
    flows = _flows([each.row.pk for channel in channels for each in channel.supplies], now)
    peaks = _peaks(now)
    of_group: dict[int, Flow] = defaultdict(Flow)
    places: dict[Key, tuple[Slots, Flow]] = {}
    for channel in channels:
        own = sum((flows[each.row.pk] for each in channel.supplies), Flow())
        if channel.row.capacity_group_id is not None:
            of_group[channel.row.capacity_group_id] += own
        places[Kind.CHANNEL.value, channel.row.pk] = channel.slots, own
        for each in channel.supplies:
            places[Kind.SUPPLY.value, each.row.pk] = each.slots, flows[each.row.pk]
    for group in groups:
        places[Kind.GROUP.value, group.row.pk] = group.slots, of_group[group.row.pk]
    return {key: _of(slots, flow, peaks.get(key)) for key, (slots, flow) in places.items()}


def _of(slots: Slots, flow: Flow, peak: PeakOfSlots | None) -> Fullness:
    free = max(0, min(slots.limit, slots.open_to_new) - slots.taken)
    return Fullness(
        peak=peak.taken if peak else None,
        peak_at=peak.seen_at if peak else None,
        full_in=time_to_full(free, flow),
        is_closed=slots.open_to_new == 0,
    )


def _flows(supplies: Sequence[int], now: datetime) -> Mapping[int, Flow]:
    since = now - WINDOW
    with connection.cursor() as cursor:
        cursor.execute(_FLOW, {"supplies": list(supplies), "since": since, "now": now, "most": MOST})
        return {pk: Flow(began, ended) for pk, began, ended in cursor.fetchall()}


def peaks_of_supplies(now: datetime) -> Mapping[int, int]:
    """Slots taken at most in the last day, by supply; one query."""
    return {pk: row.taken for (kind, pk), row in _peaks(now).items() if kind == Kind.SUPPLY.value}


def _peaks(now: datetime) -> Mapping[Key, PeakOfSlots]:
    """Of each place the highest of the last day; the last one, where it was as high twice."""
    rows = PeakOfSlots.objects.filter(hour__gt=hour_of(now) - HOURS * HOUR)
    highest = rows.order_by("kind", "subject_id", "-taken", "-seen_at").distinct("kind", "subject_id")
    return {(row.kind, row.subject_id): row for row in highest}
