"""A public model and its policy as flat fields of text: so they are typed, compared and merged.

A binding's fields are named `supply@tier:priority` and so on, by the tier from which the edit began; the
policy's `policy:order` and so on; the model's own have plain names."""

from collections.abc import Iterator, Mapping
from dataclasses import fields as dataclass_fields
from decimal import Decimal
from typing import Any, Final

from billing.money import written
from catalog.facts import BindingFacts, ModelFacts
from catalog.policy import Policy

type Fields = Mapping[str, str]

OF_MODEL: Final = ("degradation", "emergency_override", "disclosure")
OF_BINDING: Final = ("bound", "tier", "priority", "enabled", "rule")
POLICY: Final = "policy:"
# Parameters whose value nothing reads yet, and the currency that recorded amounts are in, are no fields.
_NOT_EDITED: Final = frozenset({"currency", "stats_window_s", "max_platform_loss_micros"})
PARAMETERS: Final = tuple(each.name for each in dataclass_fields(Policy) if each.name not in _NOT_EDITED)
SHARES: Final = frozenset({"success_band", "stable_cost_multiplier_limit", "fallback_cost_multiplier_limit"})
ON: Final = "on"


def fields_of(facts: ModelFacts, parameters: Mapping[str, Any]) -> dict[str, str]:
    """`parameters` are the policy's, as stored; one that is missing has its default."""
    own = {name: _text(getattr(facts, name)) for name in OF_MODEL}
    defaults = Policy()
    policy = {
        f"{POLICY}{name}": parameter_text(name, parameters.get(name, getattr(defaults, name)))
        for name in PARAMETERS
    }
    bindings = {
        f"{key_of(binding)}:{name}": text
        for binding in facts.bindings
        for name, text in binding_fields(binding).items()
    }
    return {**own, **policy, **bindings}


def key_of(binding: BindingFacts) -> str:
    return f"{binding.supply}@{binding.tier}"


def binding_fields(binding: BindingFacts) -> dict[str, str]:
    return {
        "bound": ON,
        "tier": binding.tier,
        "priority": str(binding.priority),
        "enabled": _text(binding.enabled),
        "rule": binding.rule or "",
    }


def row_keys(fields: Fields) -> Iterator[str]:
    """The keys of the bindings, removed ones too."""
    return (name.removesuffix(":bound") for name in fields if name.endswith(":bound"))


def row_of(name: str) -> str | None:
    """The key of the binding that a field belongs to; None for the others."""
    row, _colon, _field = name.rpartition(":")
    return row if "@" in row else None


def differing(base: Fields, typed: Fields) -> dict[str, str]:
    """What of `typed` is not as in `base`; a row that was added and taken out again is no difference."""
    return {
        name: value
        for name, value in typed.items()
        if base.get(name, "") != value and not _never_was(name, base, typed)
    }


def _never_was(name: str, base: Fields, typed: Fields) -> bool:
    row = row_of(name)
    return row is not None and f"{row}:bound" not in base and typed.get(f"{row}:bound") != ON


def parameter_text(name: str, value: Any) -> str:
    if name.endswith("_micros"):
        return "" if value is None else written(value)
    if name in SHARES:
        return format(Decimal(str(value)).normalize(), "f")  # 2.0 and 2 are one value
    return _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return ON if value else ""
    return str(value)
