"""Reads what a provider sent as JSON, trusting nothing about it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[!-~]{1,200}")  # what an id may be made of: no spaces, nothing invisible


@dataclass(frozen=True, slots=True)
class Unreadable:
    reason: str


def read_document(body: bytes) -> Mapping[str, Any] | Unreadable:
    """One JSON object. Endless depth and endless numbers are refused by the parser's own limits."""
    try:
        document = json.loads(
            body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates
        )
    except RecursionError:
        return Unreadable("nested too deeply")
    except ValueError as error:  # not UTF-8, not JSON, NaN, a number of too many digits
        return Unreadable(f"not JSON: {str(error)[:120]}")
    if not isinstance(document, dict):
        return Unreadable(f"a JSON {type(document).__name__}, not an object")
    return document


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice")
    return document


def section(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`; anything else counts as an empty one."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def name(value: Any) -> str | None:
    """An id: a text of visible characters, at most 200."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def address(value: Any) -> str | None:
    """An absolute web address, at most 4000 characters, all of them visible."""
    if not isinstance(value, str) or len(value) > 4000 or not value.isprintable():
        return None
    return value if value.startswith(("https://", "http://")) else None


def number(value: Any) -> int | float | None:
    """A finite number that is not negative and not absurd."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= 10**15 else None  # which NaN is not, and no comparison is too large for


def progress(value: Any) -> float | None:
    """0.37, 37 and "37%" alike as 0.37; more than everything is everything."""
    if isinstance(value, str):
        try:
            value = float(value.strip().removesuffix("%")) / (100 if "%" in value else 1)
        except ValueError:
            return None
    done = number(value)
    if done is None:
        return None
    return min(1.0, done / 100 if done > 1 else float(done))


def words(value: Any) -> str:
    """A status as a table's key: without case, spaces around, and other ways to write a space."""
    return re.sub(r"[\s_-]+", "_", value.strip().casefold()) if isinstance(value, str) else ""
