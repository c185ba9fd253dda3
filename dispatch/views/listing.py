"""What every list has: its state in the address, filters as words that can be taken away, rows in place."""

from typing import Final

from django.http import QueryDict

CURSOR: Final = ("older", "newer")

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
