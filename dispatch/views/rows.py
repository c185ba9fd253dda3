"""The rows that a live list has on the screen: a beat answers exactly these, in their order."""

from collections.abc import Callable, Iterable, Sequence

from django.http import HttpRequest

_HEADER = "Console-Rows"
MOST = 500


def rows_on_screen(request: HttpRequest) -> list[str]:
    """The ids that the page tells of, at most MOST."""
    return [each for each in request.headers.get(_HEADER, "").split(",")[:MOST] if each]


def as_shown[Row](rows: Iterable[Row], request: HttpRequest, name: Callable[[Row], str]) -> Sequence[Row]:
    """Those on the screen, in their order: a beat moves, adds and removes none."""
    by_name = {name(row): row for row in rows}
    return [by_name[each] for each in rows_on_screen(request) if each in by_name]
