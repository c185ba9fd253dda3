"""Conditions on a request's shape, as capability documents and prices write them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from catalog.document import DocumentError, Number, Section, flag, items, number, text
from catalog.shape import Shape

type When = tuple[tuple[str, Any], ...]

_READERS = {"text": text, "number": number, "flag": flag}


@dataclass(frozen=True, slots=True)
class Span:
    """Every number from `least` to `most`, both included; None leaves that side open."""

    least: Number | None
    most: Number | None

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | Fraction):
            return False
        return (self.least is None or self.least <= value) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f"{'…' if self.least is None else self.least} to {'…' if self.most is None else self.most}"


type Allowed = frozenset[Any] | Span


def read_when(section: Section, fields: Mapping[str, str]) -> When:
    """The equalities of a `when`: field and value, the value of that field's kind."""
    return tuple(
        (field, _READERS[_kind(field, section, fields)](value, f"{section.at('when')}.{field}"))
        for field, value in section.entries("when")
    )


def _kind(field: str, section: Section, fields: Mapping[str, str]) -> str:
    if field not in fields:
        path = f"{section.at('when')}.{field}"
        raise DocumentError(path, f"no such field of a request; known are {', '.join(sorted(fields))}")
    return fields[field]


def holds(when: When, shape: Shape) -> bool:
    """Whether every field of `when` equals the request's."""
    for field, value in when:  # noqa: SIM110 - the hottest loop of quoting: a generator doubles its time
        if getattr(shape, field) != value:
            return False
    return True


def read_allowed(value: Any, path: str, kind: str) -> Allowed:
    """A list of values, or `{"min", "max"}` for numbers."""
    if isinstance(value, Mapping) and kind == "number":
        return read_span(value, path)
    return frozenset(_READERS[kind](item, at) for item, at in items(value, path))


def read_span(value: Any, path: str) -> Span:
    section = Section(value, path, ("min", "max"))
    least, most = section.number("min", None), section.number("max", None)
    if least is None and most is None:
        raise DocumentError(path, "needs min, max or both")
    if least is not None and most is not None and least > most:
        raise DocumentError(path, f"min {least} is above max {most}")
    return Span(least, most)


def show(allowed: Allowed) -> str:
    """For people: `5, 10` or `4 to 15`."""
    if isinstance(allowed, Span):
        return str(allowed)
    return ", ".join(map(_written, sorted(allowed, key=_sort_key))) or "nothing"


def _sort_key(value: Any) -> tuple[bool, Any]:
    return (isinstance(value, str), value)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
