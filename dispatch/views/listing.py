"""What every list has: its state in the address, filters as words that can be taken away, rows in place."""

from typing import Final

from django.http import HttpRequest, QueryDict

from dispatch.queries.cuts import PAGE_SIZES

CURSOR: Final = ("older", "newer")
ROWS_HEADER: Final = "Console-Rows"

type Word = tuple[str, str]  # a filter in words, and the query string that is without it


def query_without(query: QueryDict, *names: str, value: tuple[str, str] | None = None) -> str:
    """The query string less some keys, or less one value of a key. A changed filter drops the cursor."""
    copy = query.copy()
    for name in (*CURSOR, *names):
        copy.pop(name, None)
    if value:
        name, text = value
        copy.setlist(name, [each for each in copy.getlist(name) if each != text])
    return copy.urlencode()


def rows_on_screen(request: HttpRequest) -> list[str]:
    """The rows that a beat asks for, in their order."""
    told = request.headers.get(ROWS_HEADER, "")
    return [each for each in told.split(",") if each][: max(PAGE_SIZES)]
