"""Which channels are out for maintenance, now and at the time of an old selection."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Q

from dispatch.models import Maintenance, SelectionRound


def maintenances() -> dict[int, Maintenance]:
    """Those that go on, by channel; with their channels."""
    rows = Maintenance.objects.filter(ended_at=None).select_related("channel")
    return {each.channel_id: each for each in rows}


def maintenances_then(rounds: Iterable[SelectionRound]) -> dict[int, Mapping[str, Maintenance]]:
    """Those that went on when each round was decided: by round, then by the channel's slug. One query."""
    rounds = list(rounds)
    times = [each.created_at for each in rounds]
    if not times:
        return {}
    near = Maintenance.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=min(times)), started_at__lte=max(times)
    ).select_related("channel")
    found = list(near)
    return {
        each.pk: {row.channel.slug: row for row in found if _went_on(row, each.created_at)} for each in rounds
    }


def _went_on(row: Maintenance, at: datetime) -> bool:
    return row.started_at <= at and (row.ended_at is None or at < row.ended_at)
