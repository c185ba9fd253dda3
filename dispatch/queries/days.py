"""A span of whole days in one zone, as lists of money and of changes are filtered."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from django.http import QueryDict

USUAL: Final = 7
MOST: Final = 92  # days that one list or sum reads


@dataclass(frozen=True, slots=True)
class Days:
    """From the begin of `first` to the end of `last` in `zone`."""

    first: date
    last: date
    zone: tzinfo
    is_usual: bool = False

    @property
    def start(self) -> datetime:
        return _midnight(self.first, self.zone)

    @property
    def end(self) -> datetime:
        """The first moment that is outside."""
        return _midnight(self.last + timedelta(days=1), self.zone)


def parse_days(query: QueryDict, now: datetime, zone: tzinfo) -> Days:
    """`from` and `to` of an address; the last USUAL days without them. At most MOST days, the later ones."""
    today = now.astimezone(zone).date()
    first, last = _day(query.get("from", "")), _day(query.get("to", ""))
    to = last or max(today, first or today)
    since = min(first or to - timedelta(days=USUAL - 1), to)
    return Days(max(since, to - timedelta(days=MOST - 1)), to, zone, is_usual=not (first or last))


def _day(text: str) -> date | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if 2000 <= found.year <= 9000 else None


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, zone).astimezone(UTC)
