"""The tag of a live region: how it looked, and what it was drawn with. Where that is as it was, a beat is
answered without drawing.

What a region is drawn with is written down whole, and whatever can't be written is drawn. So is a region that
asked the database while it was drawn: then it shows more than it was told."""

import hashlib
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from copyreg import __newobj__  # type: ignore[attr-defined]
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any, Final, Self

from django.conf import settings
from django.db import connection
from django.db.models import Model

from dispatch.views.clock import Clock

_ROOMS: Final = ("catalog", "billing", "health", "dispatch", "config", "templates")
_DRAWS: Final = ("*.py", "*.html", "*.mo")  # what decides how a page looks, beside its values
_NO_TIME: Final = 15  # digits


@dataclass(frozen=True, slots=True)
class Tag:
    """`told` is blank where it does not say all. Ages that were drawn read the same from `since` to `until`,
    in milliseconds; both are 0 where there were none."""

    looks: str = ""
    told: str = ""
    since: int = 0
    until: int = 0

    @classmethod
    def of(cls, looks: str, told: str, clock: Clock) -> Self:
        if clock.until is None:
            return cls(looks, told)
        return cls(looks, told, ceil(_ms(clock.now)), int(_ms(clock.until)))

    @classmethod
    def read(cls, text: str) -> Self:
        """What the browser sends back; anything else is a tag that vouches for nothing."""
        looks, told, since, until = (*text.split("."), "", "", "")[:4]
        return cls(looks, told, _number(since), _number(until))

    def __str__(self) -> str:
        return f"{self.looks}.{self.told}.{self.since}.{self.until}"

    def vouches(self, told: str, now: datetime) -> bool:
        """Whether what would be drawn now looks as it did."""
        holds = not self.until or self.since <= _ms(now) < self.until
        return bool(told) and told == self.told and holds


def _ms(at: datetime) -> float:
    return at.timestamp() * 1000


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < _NO_TIME else 0


def digest(written: bytes) -> str:
    return hashlib.sha256(written).hexdigest()[:16]


def told(*values: Any) -> str:
    """A digest of everything that values hold, by which they could be made again; blank for what can't be."""
    try:
        written = BytesIO()
        _Writer(written).dump((_edition(), *values))
        return digest(written.getvalue())
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError):
        return ""


class _Writer(pickle.Pickler):
    """Writes a row as its values and what is known of its relations. Django's own way copies them first."""

    def reducer_override(self, each: Any) -> Any:
        if not isinstance(each, Model):
            return NotImplemented
        values = {name: value for name, value in vars(each).items() if name != "_state"}
        return __newobj__, (type(each),), (values, each._state.fields_cache)


@lru_cache(maxsize=1)
def _edition() -> str:
    """Of the code, the words and the settings: they may change while a page stays open."""
    rooms = [Path(settings.BASE_DIR) / room for room in _ROOMS]
    files = sorted(each for room in rooms for kind in _DRAWS for each in room.rglob(kind))
    written = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in files]
    return digest(repr((written, sorted(os.environ.items()))).encode())


@contextmanager
def questions() -> Iterator[list[str]]:
    """The statements that run meanwhile."""
    asked: list[str] = []

    def note(execute: Any, statement: str, *others: Any) -> Any:
        asked.append(statement)
        return execute(statement, *others)

    with connection.execute_wrapper(note):
        yield asked
