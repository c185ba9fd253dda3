"""How a body of JSON comes in."""

from collections.abc import Iterator, Mapping
from typing import Any

from rest_framework.parsers import JSONParser

from catalog.texts import UNSTORABLE, is_storable
from dispatch.errors import InvalidRequest


class StorableJSONParser(JSONParser):
    """Refuses what PostgreSQL or UTF-8 could not carry any further, names of fields included."""

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Raises ParseError for what is no JSON, InvalidRequest, with its field, for what can't be kept."""
        try:
            body = super().parse(stream, media_type, parser_context)
            path = _unstorable(body, "")
        except RecursionError as error:
            raise InvalidRequest("This body is nested too deep.") from error
        if path is not None:
            raise InvalidRequest(f"{UNSTORABLE}.", path)
        return body


def _unstorable(value: Any, path: str) -> str | None:
    """Where the first text is that can't be stored; a name that can't is told by what it is in."""
    if isinstance(value, str):
        return None if is_storable(value) else path
    inner: Iterator[tuple[str, Any]]
    if isinstance(value, dict):
        if not all(map(is_storable, value)):
            return path
        inner = ((f"{path}.{name}" if path else name, each) for name, each in value.items())
    elif isinstance(value, list):
        inner = ((f"{path}[{number}]", each) for number, each in enumerate(value))
    else:
        return None
    return next((found for at, each in inner if (found := _unstorable(each, at)) is not None), None)
