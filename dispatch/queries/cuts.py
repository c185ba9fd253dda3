"""Pages of a list, newest first, cut by a cursor that is the number of a row: what is new moves nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Model, QuerySet
from django.http import QueryDict

PAGE_SIZES: Final = (50, 100, 200)
_MOST_DIGITS: Final = 18  # what a row's number can have at most


@dataclass(frozen=True, slots=True)
class Cursor:
    """The page begins below row `older`, or ends above row `newer`; at most one of them is set."""

    older: int = 0
    newer: int = 0
    size: int = PAGE_SIZES[0]

    @property
    def is_on_top(self) -> bool:
        return not (self.older or self.newer)


@dataclass(frozen=True)
class Cut[M: Model]:
    rows: Sequence[M]
    older: int  # cursor of the next page, or 0
    newer: int


def parse_cursor(query: QueryDict) -> Cursor:
    size = query.get("size", "")
    older, newer = _number(query.get("older", "")), _number(query.get("newer", ""))
    return Cursor(older, 0 if older else newer, int(size) if size in map(str, PAGE_SIZES) else PAGE_SIZES[0])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 0


def cut[M: Model](rows: QuerySet[M], cursor: Cursor) -> Cut[M]:
    """One query: a page and one row more, which says whether there is another page."""
    if cursor.newer:
        found = list(rows.filter(pk__gt=cursor.newer).order_by("pk")[: cursor.size + 1])
        shown = found[: cursor.size][::-1]
        return _cut(shown, is_older=True, is_newer=len(found) > cursor.size)
    below = rows.filter(pk__lt=cursor.older) if cursor.older else rows
    found = list(below.order_by("-pk")[: cursor.size + 1])
    return _cut(found[: cursor.size], is_older=len(found) > cursor.size, is_newer=bool(cursor.older))


def _cut[M: Model](shown: Sequence[M], is_older: bool, is_newer: bool) -> Cut[M]:
    if not shown:
        return Cut(shown, 0, 0)
    return Cut(shown, shown[-1].pk if is_older else 0, shown[0].pk if is_newer else 0)


def arrived[M: Model](rows: QuerySet[M], first: int, cursor: Cursor) -> int:
    """How many rows came above the first one shown, up to a page of them."""
    return len(rows.filter(pk__gt=first).order_by("pk").values_list("pk")[: cursor.size])
