"""Reading a JSON document strictly: each complaint names the path of what is wrong."""

import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

type Number = int | Fraction

_REQUIRED: Final = object()
_AMOUNT = re.compile(r"\d{1,30}(\.\d{1,30})?")


class DocumentError(ValueError):
    """`path` is where, such as `supplies.ark.price.brackets[0].min_s`; the message says what to do."""

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        super().__init__(f"{path or 'document'}: {message}")


class Section:
    """One JSON object. `null` counts as absent; a key that is not known is refused at once."""

    __slots__ = ("path", "values")

    def __init__(self, value: Any, path: str, known: Collection[str]) -> None:
        if not isinstance(value, dict):
            raise DocumentError(path, "must be an object")
        self.path = path
        self.values = value
        for key in value:
            if key not in known:
                raise DocumentError(self.at(key), f"no such key; known are {', '.join(sorted(known))}")

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def raw(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self.values.get(key)
        if value is not None:
            return value
        if default is _REQUIRED:
            raise DocumentError(self.at(key), "is missing")
        return default

    def whole(self, key: str, default: Any = _REQUIRED, *, least: int = 0, most: int | None = None) -> Any:
        value = self.raw(key, default)
        return value if value is default else whole(value, self.at(key), least, most)

    def number(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self.raw(key, default)
        return value if value is default else number(value, self.at(key))

    def amount(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self.raw(key, default)
        return value if value is default else amount(value, self.at(key))

    def flag(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self.raw(key, default)
        return value if value is default else flag(value, self.at(key))

    def text(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self.raw(key, default)
        return value if value is default else text(value, self.at(key))

    def choice(self, key: str, allowed: Collection[str], default: Any = _REQUIRED) -> Any:
        value = self.raw(key, default)
        return value if value is default else choice(value, self.at(key), allowed)

    def texts(self, key: str, default: Any = _REQUIRED) -> Any:
        value = self.raw(key, default)
        if value is default:
            return value
        return tuple(text(item, path) for item, path in items(value, self.at(key)))

    def section(self, key: str, known: Collection[str]) -> "Section":
        return Section(self.raw(key), self.at(key), known)

    def sections(self, key: str, known: Collection[str]) -> Iterator["Section"]:
        """The objects of a list; an absent list is an empty one."""
        for item, path in items(self.raw(key, ()), self.at(key)):
            yield Section(item, path, known)

    def named(self, key: str, known: Collection[str]) -> Iterator[tuple[str, "Section"]]:
        """The objects of a mapping by name; an absent mapping is an empty one."""
        for name, item in self.entries(key):
            yield name, Section(item, f"{self.at(key)}.{name}", known)

    def entries(self, key: str) -> Iterator[tuple[str, Any]]:
        mapping = self.raw(key, {})
        if not isinstance(mapping, dict):
            raise DocumentError(self.at(key), "must be an object")
        yield from mapping.items()


def items(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    if not isinstance(value, list | tuple):
        raise DocumentError(path, "must be a list")
    for index, item in enumerate(value):
        yield item, f"{path}[{index}]"


def whole(value: Any, path: str, least: int = 0, most: int | None = None) -> int:
    if isinstance(value, Decimal | float) and value == value // 1:
        value = int(value)  # JSON has one kind of number: 5.0 is 5
    if not isinstance(value, int) or isinstance(value, bool):
        raise DocumentError(path, "must be a whole number")
    if value < least or (most is not None and value > most):
        span = f"at least {least}" if most is None else f"from {least} to {most}"
        raise DocumentError(path, f"{value} must be {span}")
    return value


def number(value: Any, path: str) -> Number:
    """The decimal that is written, exactly: a float stands for its shortest form."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise DocumentError(path, "must be a number")
    if isinstance(value, int):
        return value
    exact = Decimal(str(value))
    if not exact.is_finite():
        raise DocumentError(path, "must be a finite number")
    fraction = Fraction(exact)
    return fraction.numerator if fraction.denominator == 1 else fraction


def amount(value: Any, path: str) -> Fraction:
    """A non-negative amount, written as a decimal string such as "0.30"; a JSON number is taken too."""
    written = (
        str(value) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else value
    )
    if not isinstance(written, str) or not _AMOUNT.fullmatch(written):
        raise DocumentError(path, 'must be a decimal amount that is not negative, such as "6.00"')
    return Fraction(written)


def flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise DocumentError(path, "must be true or false")
    return value


def text(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise DocumentError(path, "must be a text that is not empty")
    return value


def choice(value: Any, path: str, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise DocumentError(path, f"{value!r} must be one of {', '.join(allowed)}")
    return value
