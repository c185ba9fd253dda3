"""Tables as CSV, row by row: times in UTC and in the reporting zone, and no cell that a spreadsheet runs."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from django.http import StreamingHttpResponse
from django.utils import timezone

TIME_HEADS: Final = ("time_utc", "time_reporting_zone")
type Cell = str | int | Decimal  # only a text can be a formula

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, line: str) -> str:
        return line


def csv_response(name: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> StreamingHttpResponse:
    """`rows` are read while they are sent."""
    response = StreamingHttpResponse(_lines(heads, rows), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "no-store"
    return response


def _lines(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(heads)
    for row in rows:
        yield writer.writerow([plain(cell) if isinstance(cell, str) else cell for cell in row])


def plain(text: str) -> str:
    """What begins like a formula is set off by an apostrophe."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def both_times(at: datetime) -> tuple[str, str]:
    """Under TIME_HEADS; the zone is the one that is active when the row is made."""
    utc, local = at.astimezone(UTC), timezone.localtime(at)
    return utc.isoformat(timespec="milliseconds"), local.isoformat(timespec="milliseconds")
