"""A price document as people type it, and back; pure. Every text is kept as it was typed until it is read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from billing.pricing import parse_price
from catalog.document import DocumentError
from catalog.shape import fields_of

MODES: Final = ("per_second", "per_request")
ROWS: Final[Mapping[str, str]] = {"bracket": "min", "multiplier": "when"}  # with their first field
SPARE_ROWS: Final = 2
MOST_ROWS: Final = 40
_PLAIN: Final = ("mode", "currency", "unit", "min_s", "step_s", "per_credit")
_YES, _NO = "true", "false"


class FormError(ValueError):
    """`field` is the id of the form's field that cannot be read."""

    def __init__(self, field: str) -> None:
        self.field = field
        super().__init__(field)


@dataclass(frozen=True, slots=True)
class Texts:
    """`brackets`: least, most and fixed price; `multipliers`: condition and factor."""

    plain: Mapping[str, str]
    free_on_failure: bool
    brackets: tuple[tuple[str, str, str], ...]
    multipliers: tuple[tuple[str, str], ...]


def texts_of(document: Mapping[str, Any]) -> Texts:
    """What the form shows of a document, with a few empty rows."""
    mode = document.get("mode", MODES[0])
    plain = {name: _text(document.get(name)) for name in _PLAIN} | {
        "mode": mode,
        "unit": _text(document.get(mode)),
    }
    brackets = [
        (_text(each["min_s"]), _text(each["max_s"]), _text(each["fixed"]))
        for each in document.get("brackets", ())
    ]
    multipliers = [
        (_condition(each.get("when", {})), _text(each["factor"])) for each in document.get("multipliers", ())
    ]
    return Texts(
        plain,
        document.get("free_on_failure", True),
        (*brackets, *[("", "", "")] * SPARE_ROWS),
        (*multipliers, *[("", "")] * SPARE_ROWS),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _condition(when: Mapping[str, Any]) -> str:
    return ", ".join(f"{field}={_plain_value(value)}" for field, value in when.items())


def _plain_value(value: Any) -> str:
    if isinstance(value, bool):
        return _YES if value else _NO
    return str(value)


def texts_posted(form: Mapping[str, str]) -> Texts:
    """Of a form's fields, by their names; missing ones are empty."""
    plain = {name: form.get(name, "").strip()[:60] for name in _PLAIN}
    brackets = [
        (
            form.get(f"bracket-{row}-min", "").strip()[:40],
            form.get(f"bracket-{row}-max", "").strip()[:40],
            form.get(f"bracket-{row}-fixed", "").strip()[:40],
        )
        for row in range(_rows(form, "bracket"))
    ]
    multipliers = [
        (
            form.get(f"multiplier-{row}-when", "").strip()[:200],
            form.get(f"multiplier-{row}-factor", "").strip()[:40],
        )
        for row in range(_rows(form, "multiplier"))
    ]
    brackets += [("", "", "")] * (SPARE_ROWS - len(brackets))
    multipliers += [("", "")] * (SPARE_ROWS - len(multipliers))
    return Texts(plain, form.get("free_on_failure") == "1", tuple(brackets), tuple(multipliers))


def with_another_row(form: Mapping[str, str], name: str) -> dict[str, str]:
    """The same fields and an empty row of ROWS after those that are there; at most MOST_ROWS."""
    rows = max(_rows(form, name), SPARE_ROWS)
    return {**form, f"{name}-{rows}-{ROWS[name]}": ""} if rows < MOST_ROWS else dict(form)


def _rows(form: Mapping[str, str], name: str) -> int:
    numbers = [int(found[1]) for key in form if (found := re.match(rf"{name}-(\d{{1,2}})-", key))]
    return min(max(numbers, default=-1) + 1, MOST_ROWS)


def document_of(texts: Texts, modality: str) -> dict[str, Any]:
    """The document, as billing.pricing can execute it. Raises FormError for the first field that is wrong."""
    mode = texts.plain["mode"]
    if mode not in MODES:
        raise FormError("mode")
    document: dict[str, Any] = {"mode": mode, "currency": texts.plain["currency"].upper()}
    amounts = {mode: "unit", "per_credit": "per_credit"}
    document |= {key: texts.plain[name] for key, name in amounts.items() if texts.plain[name]}
    document |= {name: _number(name, texts.plain[name]) for name in ("min_s", "step_s") if texts.plain[name]}
    document |= _lists(texts, modality)
    if not texts.free_on_failure:
        document["free_on_failure"] = False
    try:
        parse_price(document, modality)
    except DocumentError as error:
        raise FormError(_field_at(error.path, mode)) from error
    return document


def _lists(texts: Texts, modality: str) -> dict[str, Any]:
    brackets = [
        {
            "min_s": _number(f"bracket-{row}-min", least),
            "max_s": _number(f"bracket-{row}-max", most),
            "fixed": fixed,
        }
        for row, (least, most, fixed) in enumerate(texts.brackets)
        if least or most or fixed
    ]
    multipliers = [
        {"when": _when(f"multiplier-{row}-when", condition, modality), "factor": factor}
        for row, (condition, factor) in enumerate(texts.multipliers)
        if condition or factor
    ]
    return {key: rows for key, rows in (("brackets", brackets), ("multipliers", multipliers)) if rows}


def _number(field: str, text: str) -> int | float:
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise FormError(field) from error
    if not value.is_finite() or value < 0:
        raise FormError(field)
    return int(value) if value == value.to_integral_value() else float(value)


def _when(field: str, text: str, modality: str) -> dict[str, Any]:
    kinds = fields_of(modality)
    found: dict[str, Any] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals or name not in kinds:
            raise FormError(field)
        found[name] = _value(field, kinds[name], value)
    return found


def _value(field: str, kind: str, text: str) -> Any:
    if kind == "flag":
        if text not in (_YES, _NO):
            raise FormError(field)
        return text == _YES
    return _number(field, text) if kind == "number" else text


def _field_at(path: str, mode: str) -> str:
    """The form's field for a path of the document, e.g. `price.brackets[1].fixed`."""
    inner = path.partition(".")[2]
    if found := re.match(r"brackets\[(\d+)\]\.?(\w*)", inner):
        part = {"min_s": "min", "max_s": "max", "fixed": "fixed"}.get(found[2], "min")
        return f"bracket-{found[1]}-{part}"
    if found := re.match(r"multipliers\[(\d+)\]\.?(\w*)", inner):
        return f"multiplier-{found[1]}-{'factor' if found[2] == 'factor' else 'when'}"
    return "unit" if inner in ("", mode) else inner
