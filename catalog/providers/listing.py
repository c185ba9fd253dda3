"""Looks a lost submission up in a provider's list of jobs, and says what one complete reading proves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from catalog.providers.types import Absent, CannotTell, Found, RecoverResult, Window

_MOST_PAGES = 60
_MOST_AHEAD = timedelta(days=1)  # further apart, one of the clocks says nothing


@dataclass(frozen=True, slots=True)
class Row:
    """One job of a list. `reference` is our own, as the provider repeats it."""

    provider_job_id: str
    reference: str | None
    created_at: datetime | None
    raw_status: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    rows: tuple[Row, ...]
    total: int | None = None  # rows on all pages, where the provider counts them
    answered_at: datetime | None = None  # by the provider's clock, where it says so


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A page that could not be read."""

    reason: str


@dataclass(slots=True)
class _Reading:
    """What was read so far; `begin_at`: what was made before is not ours, by the provider's clock."""

    begin_at: datetime
    rows: dict[str, Row] = field(default_factory=dict)
    newest_first: bool = True
    last_at: datetime | None = None

    def add(self, row: Row) -> None:
        if self.last_at is not None and (row.created_at is None or row.created_at > self.last_at):
            self.newest_first = False
        self.last_at = row.created_at or self.last_at
        self.rows[row.provider_job_id] = row

    def is_past(self) -> bool:
        """Nothing older is of interest. Believed of a list only after it has shown its order."""
        times = {row.created_at for row in self.rows.values()}
        return (
            self.newest_first and len(times) > 1 and self.last_at is not None and self.last_at < self.begin_at
        )

    def may_be_ours(self, row: Row) -> bool:
        return row.reference is None and (row.created_at is None or row.created_at >= self.begin_at)


def look_up(key: str, window: Window, read_page: Callable[[int], Page | Unlisted]) -> RecoverResult:
    """Reads pages, from 1, until they hold `key` or the window is covered; times of rows in UTC.

    The window is by our clock and ends now; where that is ahead of the provider's, it begins so much earlier.
    `Absent` needs the whole of it: a list that breaks off, or that holds a job of that time or later without
    any reference, proves nothing."""
    reading = _Reading(window.begin_at)
    for number in range(1, _MOST_PAGES + 1):
        page = read_page(number)
        if isinstance(page, Unlisted):
            return CannotTell(page.reason)
        found = _matching(page, key)
        if found is not None:
            return Found(found.provider_job_id, found.raw_status, {"page": number})
        reading.begin_at = min(reading.begin_at, _begins(window, page))
        for row in page.rows:
            reading.add(row)
        if _is_complete(page, reading):
            return _absence(reading)
        if not page.rows:
            return CannotTell(f"the list ended after {len(reading.rows)} of {page.total} jobs")
    return CannotTell(f"more than {_MOST_PAGES} pages, in no order that could shorten them")


def _matching(page: Page, key: str) -> Row | None:
    return next((row for row in page.rows if row.reference == key), None)


def _begins(window: Window, page: Page) -> datetime:
    if page.answered_at is None:
        return window.begin_at
    ahead = window.end_at - page.answered_at
    return window.begin_at - min(max(ahead, timedelta()), _MOST_AHEAD)


def _is_complete(page: Page, reading: _Reading) -> bool:
    if reading.is_past():
        return True
    if page.total is None:
        return not page.rows
    return len(reading.rows) >= page.total


def _absence(reading: _Reading) -> RecoverResult:
    nameless = sum(map(reading.may_be_ours, reading.rows.values()))
    if nameless:
        return CannotTell(f"{nameless} jobs of that time carry no reference, so one of them may be ours")
    return Absent(len(reading.rows), "a complete list without our reference")
