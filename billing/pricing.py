"""What one request costs by a price document: exact rationals, and one rounding half up to micros at the end.

The same for provider costs and sale prices. Documents are read once; quoting is integer arithmetic.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from billing.money import MICROS, half_up
from catalog.condition import When, holds, read_when
from catalog.currency import is_currency
from catalog.document import DocumentError, Number, Section
from catalog.shape import ImageShape, Shape, fields_of

type Ratio = tuple[int, int]

ONE: Final[Ratio] = (1, 1)

# What a scenario's price may hold, by mode, and what a cost rule's document may hold besides.
SCENARIO_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "per_second": ("mode", "currency", "per_second", "min_s", "brackets", "multipliers"),
    "per_request": ("mode", "currency", "per_request", "multipliers"),
}
PRICE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "per_second": (*SCENARIO_KEYS["per_second"], "step_s", "per_credit", "free_on_failure"),
    "per_request": (*SCENARIO_KEYS["per_request"], "per_credit", "free_on_failure"),
}
_ANY_KEY: Final = frozenset(key for keys in PRICE_KEYS.values() for key in keys)


@dataclass(frozen=True, slots=True)
class Bracket:
    """From `min_s` to `max_s`, both included, the whole `fixed` is charged."""

    min_s: Number
    max_s: Number
    fixed: Ratio


@dataclass(frozen=True, slots=True)
class Multiplier:
    when: When
    factor: Ratio


@dataclass(frozen=True, slots=True)
class Price:
    """A price document, read. `unit` is the currency's amount per second or per request."""

    mode: str
    currency: str
    unit: Ratio | None  # None: brackets only
    min_s: Number = 0  # a shorter video is charged as this long
    step_s: Number | None = None  # seconds are charged in whole steps of this
    brackets: tuple[Bracket, ...] = ()
    multipliers: tuple[Multiplier, ...] = ()  # in declared order
    free_on_failure: bool = True


@dataclass(frozen=True, slots=True)
class Quote:
    """What a request costs, in the price's own currency and in the one that was asked for."""

    micros: int
    currency: str
    native_micros: int
    native_currency: str


def parse_price(
    document: Any, modality: str, path: str = "price", keys: Mapping[str, Collection[str]] = PRICE_KEYS
) -> Price:
    """Raises DocumentError, naming the path, for an unknown key or a value that can't be."""
    section = Section(document, path, ("per_token", *_ANY_KEY))
    mode = section.choice("mode", ("per_second", "per_request", "per_token"))
    if mode == "per_token":
        raise DocumentError(
            section.at("mode"), "per_token can be stored, but not executed: use per_second or per_request"
        )
    _refuse_others(section, mode, keys[mode])
    price = Price(
        mode=mode,
        currency=_currency(section),
        unit=_ratio(section.amount(mode, None)),
        min_s=section.number("min_s", 0),
        step_s=_step(section),
        brackets=_brackets(section),
        multipliers=_multipliers(section, modality),
        free_on_failure=section.flag("free_on_failure", True),
    )
    if price.unit is None and not price.brackets:
        raise DocumentError(section.at(mode), "is missing")
    return price


def _refuse_others(section: Section, mode: str, known: Collection[str]) -> None:
    for key in section.values:
        if key not in known and section.has(key):
            raise DocumentError(
                section.at(key), f"does not belong to a price {mode}; known are {', '.join(known)}"
            )


def _currency(section: Section) -> str:
    code = section.text("currency")
    if not is_currency(code):
        raise DocumentError(section.at("currency"), f"{code!r} is not a three-letter code such as USD")
    return str(code)


def _ratio(amount: Fraction | None) -> Ratio | None:
    return None if amount is None else amount.as_integer_ratio()


def _step(section: Section) -> Number | None:
    step: Number | None = section.number("step_s", None)
    if step is not None and step <= 0:
        raise DocumentError(section.at("step_s"), "must be above 0")
    return step


def _brackets(section: Section) -> tuple[Bracket, ...]:
    brackets = [_bracket(each) for each in section.sections("brackets", ("min_s", "max_s", "fixed"))]
    for index, bracket in enumerate(brackets):
        for other in brackets[:index]:
            if bracket.min_s <= other.max_s and other.min_s <= bracket.max_s:
                raise DocumentError(
                    f"{section.at('brackets')}[{index}]", "overlaps another: one duration, one price"
                )
    return tuple(brackets)


def _bracket(section: Section) -> Bracket:
    bracket = Bracket(
        section.number("min_s"), section.number("max_s"), section.amount("fixed").as_integer_ratio()
    )
    if not 0 <= bracket.min_s <= bracket.max_s:
        raise DocumentError(section.at("min_s"), f"must be from 0 to max_s {bracket.max_s}")
    return bracket


def _multipliers(section: Section, modality: str) -> tuple[Multiplier, ...]:
    fields = fields_of(modality)
    multipliers = [
        Multiplier(read_when(each, fields), each.amount("factor").as_integer_ratio())
        for each in section.sections("multipliers", ("when", "factor"))
    ]
    if section.has("per_credit"):  # amounts are the provider's credits: what one of them costs comes last
        multipliers.append(Multiplier((), section.amount("per_credit").as_integer_ratio()))
    return tuple(multipliers)


def rate_to(currency: str, price: Price, rates: Mapping[str, Ratio]) -> Ratio | None:
    """Units of `currency` for one unit of the price's; None where no rate is known."""
    return ONE if price.currency == currency else rates.get(price.currency)


def quote_micros(price: Price, shape: Shape, rate: Ratio = ONE) -> int | None:
    """Micros after conversion by `rate`; None where the document has no price for this request."""
    base = _base(price, shape)
    if base is None:
        return None
    numerator, denominator = base
    for multiplier in price.multipliers:
        if holds(multiplier.when, shape):
            numerator *= multiplier.factor[0]
            denominator *= multiplier.factor[1]
    return half_up(numerator * shape.count * rate[0] * MICROS, denominator * rate[1])


def quote(price: Price, shape: Shape, currency: str, rates: Mapping[str, Ratio]) -> Quote | None:
    """The quote in both currencies, each rounded once; None without a price or a rate."""
    rate = rate_to(currency, price, rates)
    native = quote_micros(price, shape)
    converted = None if rate is None else quote_micros(price, shape, rate)
    if native is None or converted is None:
        return None
    return Quote(converted, currency, native, price.currency)


def _base(price: Price, shape: Shape) -> Ratio | None:
    """One result, before multipliers: the bracket that holds the duration, else units by unit price."""
    if price.mode == "per_request":
        return price.unit
    if isinstance(shape, ImageShape) or shape.duration_s is None:
        return None
    duration = shape.duration_s
    for bracket in price.brackets:
        if bracket.min_s <= duration <= bracket.max_s:
            return bracket.fixed
    return None if price.unit is None else _by_the_second(price, price.unit, duration)


def _by_the_second(price: Price, unit: Ratio, duration: Number) -> Ratio:
    seconds = max(duration, price.min_s)
    if price.step_s is not None:
        seconds = -(-seconds // price.step_s) * price.step_s
    return unit[0] * seconds.numerator, unit[1] * seconds.denominator
