"""The words of a public model's fields and of its policy's parameters, each with its unit and its effect."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.money import written
from catalog.policy import ORDERS, SHADOW_ORDERS, Policy
from dispatch.drafting.fields import PARAMETERS, POLICY, row_of
from dispatch.views import vocabulary

type Text = str | Promise


@dataclass(frozen=True, slots=True)
class Parameter:
    """`unit` stands after the value; `kind` is order, flag, whole, share or money."""

    label: Text
    help: Text
    kind: str = "whole"
    unit: Text = ""


_SECONDS: Final = gettext_lazy("seconds")
_TIMES: Final = gettext_lazy("times the baseline")
WORDS: Final[Mapping[str, Parameter]] = {
    "order": Parameter(
        gettext_lazy("Order"),
        gettext_lazy("What decides between supplies that can take a request. Tiers always go first."),
        "order",
    ),
    "min_samples": Parameter(
        gettext_lazy("Samples until a success rate is believed"),
        gettext_lazy("A supply with fewer ends in 24 hours takes the rate of the others of its tier."),
        unit=gettext_lazy("samples"),
    ),
    "success_band": Parameter(
        gettext_lazy("Width of a success band"),
        gettext_lazy("Rates within one band count as equal. 0.02 is two percentage points."),
        "share",
    ),
    "stable_cost_multiplier_limit": Parameter(
        gettext_lazy("Exact supplies: at most"),
        gettext_lazy("A dearer one is left out. Not read when cost comes first."),
        "share",
        _TIMES,
    ),
    "fallback_cost_multiplier_limit": Parameter(
        gettext_lazy("Fallback and degraded supplies: at most"),
        gettext_lazy("A dearer one is left out, whatever the order."),
        "share",
        _TIMES,
    ),
    "max_cost_micros": Parameter(
        gettext_lazy("Ceiling for one job"),
        gettext_lazy("With all its attempts. Nothing lifts it. Empty: no ceiling."),
        "money",
    ),
    "spill_when_saturated": Parameter(
        gettext_lazy("When exact supplies are full, use fallback ones"),
        gettext_lazy("Off: the job waits for a free slot. Degraded supplies are never used for that."),
        "flag",
    ),
    "probe_every": Parameter(
        gettext_lazy("A recovering supply goes first every"),
        gettext_lazy("So that it gets work again while others are healthy. 0: never."),
        unit=gettext_lazy("selections"),
    ),
    "shadow_order": Parameter(
        gettext_lazy("Compare with"),
        gettext_lazy("A second order that is worked out and recorded beside the real one, never used."),
        "order",
    ),
    "max_attempts": Parameter(
        gettext_lazy("Attempts for one job"),
        gettext_lazy("2 allows the one switch of supply, 1 forbids it."),
        unit=gettext_lazy("attempts"),
    ),
    "dispatch_deadline_s": Parameter(
        gettext_lazy("A job may wait for a supply at most"),
        gettext_lazy("After that it expires, and the customer pays nothing."),
        unit=_SECONDS,
    ),
    "max_execution_s": Parameter(
        gettext_lazy("A provider may work on it at most"),
        gettext_lazy("After that the outcome counts as not known."),
        unit=_SECONDS,
    ),
    "uncertain_deadline_s": Parameter(
        gettext_lazy("An unknown outcome is looked for at most"),
        gettext_lazy("After that the attempt is given up."),
        unit=_SECONDS,
    ),
    "quarantine_s": Parameter(
        gettext_lazy("The slot of an attempt that was given up is kept for"),
        gettext_lazy("Longer than a provider may work on it, since it may still run there."),
        unit=_SECONDS,
    ),
    "max_retry_after_wait_s": Parameter(
        gettext_lazy("Wait for a supply that asks for patience at most"),
        gettext_lazy("A longer wait counts as unhealthy, and the next tier is tried."),
        unit=_SECONDS,
    ),
    "sync_total_timeout_s": Parameter(
        gettext_lazy("A synchronous call may last at most"),
        gettext_lazy("After that its outcome counts as not known."),
        unit=_SECONDS,
    ),
    "max_cost_per_success_micros": Parameter(
        gettext_lazy("Warn when a success costs more than"),
        gettext_lazy("Raises an alert and stops nothing. Empty: no warning."),
        "money",
    ),
}
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {"order": ORDERS, "shadow_order": ("", *SHADOW_ORDERS)}
GROUPS: Final[tuple[tuple[Text, tuple[str, ...]], ...]] = (
    (
        gettext_lazy("Choice and cost"),
        (
            "order", "shadow_order", "max_cost_micros", "stable_cost_multiplier_limit",
            "fallback_cost_multiplier_limit", "max_cost_per_success_micros", "min_samples", "success_band",
            "probe_every", "spill_when_saturated",
        ),
    ),
    (
        gettext_lazy("Time and attempts"),
        (
            "max_attempts", "dispatch_deadline_s", "max_execution_s", "sync_total_timeout_s",
            "uncertain_deadline_s", "quarantine_s", "max_retry_after_wait_s",
        ),
    ),
)  # fmt: skip
BINDING_FIELDS: Final[Mapping[str, Text]] = {
    "bound": gettext_lazy("bound"),
    "tier": gettext_lazy("tier"),
    "priority": gettext_lazy("priority"),
    "enabled": gettext_lazy("switched on"),
    "rule": gettext_lazy("degradation rule"),
}
MODEL_FIELDS: Final[Mapping[str, Text]] = {
    "degradation": gettext_lazy("When no full supply is available"),
    "emergency_override": gettext_lazy("Emergency availability override"),
    "disclosure": gettext_lazy("Disclosure to customers"),
}


_VALUES: Final = {
    "tier": vocabulary.TIERS,
    "order": vocabulary.ORDERS,
    "degradation": vocabulary.DEGRADATION,
}


def label_of(field: str) -> str:
    """A field in words, with the binding that it belongs to."""
    row = row_of(field)
    if row is not None:
        supply, _at, tier = row.rpartition("@")
        what = BINDING_FIELDS[field.rpartition(":")[2]]
        tier_name = vocabulary.TIER_NAMES[tier]
        return _("%(supply)s (%(tier)s): %(field)s") % {"supply": supply, "tier": tier_name, "field": what}
    if field.startswith(POLICY):
        return str(_words(field.removeprefix(POLICY)).label)
    return str(MODEL_FIELDS[field])


def value_of(field: str, text: str | None) -> str:
    """A field's value in words; text is shown as it was typed."""
    kind = _kind(field)
    if text is None:
        return _("not bound")
    if kind == "priority" and text.isdecimal():
        return f"{int(text):,}"
    if kind == "flag":
        return str(vocabulary.YES_NO["yes" if text else "no"])
    words = {"tier": vocabulary.TIERS, "order": vocabulary.ORDERS, "degradation": vocabulary.DEGRADATION}.get(
        kind
    )
    if words is not None and text in words:
        return str(words[text])
    return text or _("none")


def _kind(field: str) -> str:
    name = field.rpartition(":")[2]
    if name in ("bound", "enabled", "emergency_override", "spill_when_saturated"):
        return "flag"
    return "order" if name in CHOICES else name


def _words(name: str) -> Parameter:
    return WORDS.get(name, Parameter(name, ""))


@dataclass(frozen=True, slots=True)
class PolicyFact:
    name: str
    label: Text
    help: Text
    text: str


def policy_facts(parameters: Mapping[str, Any]) -> list[PolicyFact]:
    """Every parameter of a policy in words, in the order of GROUPS; one without words by its own name."""
    defaults = {each.name: each.default for each in fields(Policy)}
    values = defaults | dict(parameters)
    grouped = [name for _title, names in GROUPS for name in names if name in defaults]
    rest = [name for name in PARAMETERS if name not in grouped]
    return [_fact(name, values[name], str(values["currency"])) for name in (*grouped, *rest)]


def _fact(name: str, value: Any, currency: str) -> PolicyFact:
    words = _words(name)
    if words.kind == "flag":
        text = str(vocabulary.YES_NO["yes" if value else "no"])
    elif words.kind == "order":
        text = vocabulary.word(vocabulary.ORDERS, value) if value else _("none")
    elif words.kind == "money":
        text = _("none") if value is None else f"{written(value)} {currency}"
    else:
        text = f"{value} {words.unit}".strip()
    return PolicyFact(name, words.label, words.help, text)
