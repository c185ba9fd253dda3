"""From typed fields back to a public model and its policy, with what is wrong in each field."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from billing.money import MoneyError, micros_of
from catalog.facts import BindingFacts, ModelFacts, in_order
from catalog.policy import PRIORITY_MAX, PolicyError, parse_policy
from dispatch.drafting.fields import (
    ON,
    PARAMETERS,
    POLICY,
    SHARES,
    Fields,
    fields_of,
    parameter_text,
    row_keys,
)

# Digits, or groups of three set apart in one way: 900000, 900,000, 900 000.
_WHOLE: Final = re.compile(r"\d+|\d{1,3}([,  _])\d{3}(\1\d{3})*")
_DECIMAL: Final = re.compile(r"\d+(\.\d+)?")
_MONEY: Final = re.compile(r"\d+(\.\d{1,6})?")
_WORDS: Final = frozenset({"order", "shadow_order"})
DISCLOSURE_LENGTH: Final = 4_000
NOT_A_PRIORITY: Final = "Priority must be a whole number from 0 to 1,000,000. You entered {typed}."
EMPTY_PRIORITY: Final = "Give a priority: a whole number from 0 to 1,000,000."
NOT_A_NUMBER: Final = "Give a whole number. You entered {typed}."
NOT_A_DECIMAL: Final = "Give a number, such as 1.5. You entered {typed}."
NOT_AN_AMOUNT: Final = "Give an amount with at most six decimal places, such as 30.00. You entered {typed}."
OUT_OF_RANGE: Final = "This value can't be: {why}."
NO_CHOICE: Final = "Choose one of the values. You sent {typed}."
NO_RULE: Final = "Choose the rule that says what a degraded delivery drops."
TWICE: Final = "This supply is bound in this tier already."
TOO_LONG: Final = "At most {most} characters."
FAULTS: Final = (
    NOT_A_PRIORITY,
    EMPTY_PRIORITY,
    NOT_A_NUMBER,
    NOT_A_DECIMAL,
    NOT_AN_AMOUNT,
    OUT_OF_RANGE,
    NO_CHOICE,
    NO_RULE,
    TWICE,
    TOO_LONG,
)
_TIERS: Final = ("exact", "fallback", "degraded")
_DEGRADATION: Final = ("strict", "best_effort")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong in one field: an English msgid with its values."""

    at: str  # the field
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One binding of the form. A value that can't be read is that of the base."""

    key: str
    facts: BindingFacts
    bound: bool
    is_new: bool


@dataclass(frozen=True)
class Draft:
    """What the typed fields mean; where `faults` are, the base's value stands for the typed one."""

    facts: ModelFacts
    parameters: dict[str, Any]
    rows: tuple[Row, ...]
    faults: tuple[Fault, ...]

    def fault_of(self, name: str) -> Fault | None:
        return next((each for each in self.faults if each.at == name), None)


def read_draft(base: ModelFacts, parameters: Mapping[str, Any], typed: Fields) -> Draft:
    """The model `base`, routed by `parameters`, with what was typed over it."""
    fields = {**fields_of(base, parameters), **typed}
    faults: list[Fault] = []
    rows = tuple(_rows(fields, base, faults))
    faults += _twice(rows)
    facts = replace(
        base,
        bindings=in_order(row.facts for row in rows if row.bound),
        degradation=_choice("degradation", fields, _DEGRADATION, base.degradation, faults),
        emergency_override=fields["emergency_override"] == ON,
        disclosure=_disclosure(fields, base, faults),
    )
    return Draft(facts, _parameters(fields, parameters, typed, faults), rows, tuple(faults))


def whole_number(text: str) -> int | None:
    """With or without separators of thousands; None for anything else."""
    text = text.strip()
    return int(re.sub(r"\D", "", text)) if _WHOLE.fullmatch(text) else None


def canonical(name: str, text: str) -> str:
    """The text as `fields_of` would write it where it can be read, so that 900,000 is no change of 900000."""
    if name.endswith(":priority"):
        number = whole_number(text)
        return text if number is None else str(number)
    if name.startswith(POLICY):
        parameter = name.removeprefix(POLICY)
        value, fault = _parameter(parameter, text.strip())
        return text if fault or parameter not in PARAMETERS else parameter_text(parameter, value)
    return text.replace("\r\n", "\n")  # as a browser sends line ends


def _rows(fields: Fields, base: ModelFacts, faults: list[Fault]) -> Iterator[Row]:
    before = {f"{each.supply}@{each.tier}": each for each in base.bindings}
    for key in row_keys(fields):
        supply, _at, tier = key.rpartition("@")
        known = before.get(key, BindingFacts(supply, tier))
        bound = fields[f"{key}:bound"] == ON
        facts = _binding(key, known, fields, faults if bound else [])
        yield Row(key, facts, bound, is_new=key not in before)


def _binding(key: str, known: BindingFacts, fields: Fields, faults: list[Fault]) -> BindingFacts:
    tier = _choice(f"{key}:tier", fields, _TIERS, known.tier, faults)
    rule = fields.get(f"{key}:rule") or None
    if tier == "degraded" and rule is None:
        faults.append(Fault(f"{key}:rule", NO_RULE))
    return BindingFacts(
        supply=known.supply,
        tier=tier,
        priority=_priority(f"{key}:priority", fields, known.priority, faults),
        enabled=fields.get(f"{key}:enabled", ON) == ON,
        rule=rule if tier == "degraded" else None,
    )


def _priority(name: str, fields: Fields, before: int, faults: list[Fault]) -> int:
    text = fields.get(name, "0").strip()
    number = whole_number(text)
    if number is not None and number <= PRIORITY_MAX:
        return number
    faults.append(Fault(name, NOT_A_PRIORITY, {"typed": text}) if text else Fault(name, EMPTY_PRIORITY))
    return before


def _twice(rows: tuple[Row, ...]) -> Iterator[Fault]:
    seen = set()
    for row in rows:
        place = (row.facts.supply, row.facts.tier)
        if row.bound and place in seen:
            yield Fault(f"{row.key}:tier", TWICE)
        if row.bound:
            seen.add(place)


def _choice(name: str, fields: Fields, allowed: tuple[str, ...], before: str, faults: list[Fault]) -> str:
    value = fields.get(name, before)
    if value in allowed:
        return value
    faults.append(Fault(name, NO_CHOICE, {"typed": value}))
    return before


def _disclosure(fields: Fields, base: ModelFacts, faults: list[Fault]) -> str:
    text = fields["disclosure"]
    if len(text) <= DISCLOSURE_LENGTH:
        return text
    faults.append(Fault("disclosure", TOO_LONG, {"most": DISCLOSURE_LENGTH}))
    return base.disclosure


def _parameters(
    fields: Fields, stored: Mapping[str, Any], typed: Fields, faults: list[Fault]
) -> dict[str, Any]:
    """The stored parameters with the typed ones over them, each checked as the policy checks it."""
    result = dict(stored)
    for name in PARAMETERS:
        at = f"{POLICY}{name}"
        if at not in typed:
            continue
        value, fault = _parameter(name, fields[at].strip())
        if fault is None:
            fault = _out_of_range(name, value)
        if fault is None:
            result[name] = value
        else:
            faults.append(replace(fault, at=at))
    return result


def _parameter(name: str, text: str) -> tuple[Any, Fault | None]:
    told = {"typed": text}
    if name == "spill_when_saturated":
        return text == ON, None
    if name in _WORDS:
        return text or None, None
    if name.endswith("_micros"):
        return _amount(text)
    if name in SHARES:
        if not _DECIMAL.fullmatch(text):
            return None, Fault(name, NOT_A_DECIMAL, told)
        return parameter_text(name, text), None
    number = whole_number(text)
    return (number, None) if number is not None else (None, Fault(name, NOT_A_NUMBER, told))


def _amount(text: str) -> tuple[int | None, Fault | None]:
    """Micros; empty is no limit."""
    if not text:
        return None, None
    plain = text.replace(",", "")
    if not _MONEY.fullmatch(plain):
        return None, Fault("", NOT_AN_AMOUNT, {"typed": text})
    try:
        return micros_of(Decimal(plain)), None
    except MoneyError:
        return None, Fault("", NOT_AN_AMOUNT, {"typed": text})


def _out_of_range(name: str, value: Any) -> Fault | None:
    try:
        parse_policy({name: value})
    except PolicyError as error:
        return Fault(name, OUT_OF_RANGE, {"why": str(error).partition(": ")[2]})
    return None
