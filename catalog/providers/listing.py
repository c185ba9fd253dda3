"""Looks a lost submission up in a provider's list of jobs, and says what one complete reading proves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from catalog.providers.types import Absent, CannotTell, Found, RecoverResult, Window

_MOST_PAGES = 60


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


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A page that could not be read."""

    reason: str


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    rows: dict[str, Row] = field(default_factory=dict)
    newest_first: bool = True
    last_at: datetime | None = None

    def add(self, row: Row) -> None:
        if self.last_at is not None and (row.created_at is None or row.created_at > self.last_at):
            self.newest_first = False
        self.last_at = row.created_at or self.last_at
        self.rows[row.provider_job_id] = row

    def is_past(self, begin_at: datetime) -> bool:
        """Nothing older is of interest. Believed of a list only after it has shown its order."""
        times = {row.created_at for row in self.rows.values()}
        return self.newest_first and len(times) > 1 and self.last_at is not None and self.last_at < begin_at


def look_up(key: str, window: Window, read_page: Callable[[int], Page | Unlisted]) -> RecoverResult:
    """Reads pages, from 1, until they hold `key` or the window is covered; times of rows in UTC.

    `Absent` needs the whole window: a list that breaks off, or that holds a job of the window without any
    reference, proves nothing."""
    reading = _Reading()
    for number in range(1, _MOST_PAGES + 1):
        page = read_page(number)
        if isinstance(page, Unlisted):
            return CannotTell(page.reason)
        found = _matching(page, key)
        if found is not None:
            return Found(found.provider_job_id, found.raw_status, {"page": number})
        for row in page.rows:
            reading.add(row)
        if _is_complete(page, reading, window):
            return _absence(reading, window)
        if not page.rows:
            return CannotTell(f"the list ended after {len(reading.rows)} of {page.total} jobs")
    return CannotTell(f"more than {_MOST_PAGES} pages, in no order that could shorten them")


def _matching(page: Page, key: str) -> Row | None:
    return next((row for row in page.rows if row.reference == key), None)


def _is_complete(page: Page, reading: _Reading, window: Window) -> bool:
    if reading.is_past(window.begin_at):
        return True
    if page.total is None:
        return not page.rows
    return len(reading.rows) >= page.total


def _absence(reading: _Reading, window: Window) -> RecoverResult:
    nameless = [row for row in reading.rows.values() if row.reference is None and _is_within(row, window)]
    if nameless:
        return CannotTell(f"{len(nameless)} jobs of that time carry no reference, so one of them may be ours")
    return Absent(len(reading.rows), "a complete list without our reference")


def _is_within(row: Row, window: Window) -> bool:
    return row.created_at is None or window.begin_at <= row.created_at <= window.end_at
