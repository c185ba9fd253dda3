"""When a price begins: wall-clock times of a zone, and the next Monday there; pure."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo


class StartError(ValueError):
    """The text is no time, or a time that the zone's clocks skip."""


def next_monday(now: datetime, zone: ZoneInfo) -> datetime:
    """The first Monday 00:00 of `zone` after `now`, as UTC; where the clocks skip it, when they go on."""
    today = now.astimezone(zone).date()
    monday = today + timedelta(days=7 - today.weekday())
    return datetime.combine(monday, time.min, zone).astimezone(UTC)


def read_start(text: str, zone: ZoneInfo) -> datetime:
    """`2026-12-07T00:00` in `zone`, as UTC; of a time that comes twice, the first. Raises StartError."""
    try:
        naive = datetime.fromisoformat(text)
    except ValueError as error:
        raise StartError(text) from error
    if naive.tzinfo is not None:
        raise StartError(text)
    at = naive.replace(tzinfo=zone).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None) != naive:
        raise StartError(text)  # skipped when the clocks go forward
    return at


def clocks_change(first: datetime, last: datetime, zone: ZoneInfo) -> bool:
    """Whether the zone's distance from UTC differs between the two."""
    return first.astimezone(zone).utcoffset() != last.astimezone(zone).utcoffset()
