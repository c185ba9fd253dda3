"""Money: integer micros, exact rationals on the way there, one rounding."""

from decimal import Decimal
from fractions import Fraction
from typing import Final

MICROS: Final = 1_000_000


class MoneyError(ValueError):
    """An amount that is not a whole number of micros."""


def half_up(numerator: int, denominator: int) -> int:
    """numerator / denominator, neither negative, to the nearest whole; a half goes up."""
    return (2 * numerator + denominator) // (2 * denominator)


def micros_of(amount: Fraction | Decimal | str | int) -> int:
    """Raises MoneyError where the amount is finer than a micro: nothing is rounded silently."""
    micros = Fraction(amount) * MICROS
    if micros.denominator != 1:
        raise MoneyError(f"{amount} is finer than a millionth")
    return micros.numerator


def written(micros: int) -> str:
    """A decimal text with two to six places: 6000000 → 6.00, 123456 → 0.123456."""
    units, rest = divmod(abs(micros), MICROS)
    places = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if micros < 0 else ''}{units}.{places}"
