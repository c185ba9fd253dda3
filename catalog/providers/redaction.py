"""What may be stored or logged of a provider's words: bounded, storable as JSON, without secrets."""

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_DEPTH, _ITEMS, _CHARS = 12, 100, 1000
_HIDDEN = "…"
# A customer's words, and pictures in a text; matched as whole keys, whatever the case.
_PERSONAL = frozenset({"prompt", "revised_prompt", "negative_prompt", "text", "b64_json"})
_SECRET = frozenset({"authorization", "api_key", "apikey", "token", "secret", "password", "credential"})
_NEVER_SHOWN = _PERSONAL | _SECRET


def redacted(value: Any, secrets: tuple[str, ...] = (), depth: int = _DEPTH) -> Any:
    """The value with prompts, secrets and the queries of signed addresses replaced by an ellipsis."""
    if isinstance(value, Mapping):
        return _object(value, secrets, depth)
    if isinstance(value, list | tuple):
        items = value[:_ITEMS] if depth else ()
        return [redacted(item, secrets, depth - 1) for item in items]
    if isinstance(value, str):
        return _text(value, secrets)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return cleaned(str(value))


def _object(value: Mapping[Any, Any], secrets: tuple[str, ...], depth: int) -> Any:
    if not depth:
        return _HIDDEN
    return {
        cleaned(str(key), 100): _HIDDEN
        if isinstance(item, str) and str(key).casefold() in _NEVER_SHOWN
        else redacted(item, secrets, depth - 1)
        for key, item in list(value.items())[:_ITEMS]
    }


def _text(value: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        if secret:
            value = value.replace(secret, _HIDDEN)
    if value.startswith(("https://", "http://")):
        value = _unsigned(value)
    return cleaned(value)


def _unsigned(url: str) -> str:
    """The address without what may be a signature."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return _HIDDEN
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, parts.query and _HIDDEN, ""))


def cleaned(text: str, most: int = _CHARS) -> str:
    """Without the characters that PostgreSQL can't store, and cut to `most`."""
    storable = text.replace("\0", "").encode("utf-8", "replace").decode()
    return storable if len(storable) <= most else storable[: most - 1] + _HIDDEN
