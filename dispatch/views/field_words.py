"""Names and values of stored documents in words: capabilities, requests, changes of the audit."""

import json
from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dispatch.views import vocabulary as words
from dispatch.views.model_words import BINDING_FIELDS, MODEL_FIELDS
from dispatch.views.money_words import COST_MODES
from dispatch.views.supply_words import MODES, SUPPLY_FIELDS
from dispatch.views.vocabulary import Words

FIELDS: Final[Words] = {
    **SUPPLY_FIELDS,
    **words.SETTINGS,
    **BINDING_FIELDS,
    **MODEL_FIELDS,
    "compliance": gettext_lazy("Compliance"),
    "constraints": gettext_lazy("Constraints"),
    "inputs": gettext_lazy("Inputs"),
    "controls": gettext_lazy("Controls"),
    "negative_prompt": gettext_lazy("Negative prompt"),
    "images": gettext_lazy("Reference images"),
    "videos": gettext_lazy("Reference videos"),
    "audios": gettext_lazy("Reference audio"),
    "max_samples": gettext_lazy("Results at most"),
    "note": gettext_lazy("Note"),
    "reason": gettext_lazy("Reason"),
    "why": gettext_lazy("Reason"),
    "state": gettext_lazy("State"),
    "limit": gettext_lazy("Limit"),
    "revision": gettext_lazy("Revision"),
    "published_revision": gettext_lazy("Published revision"),
    "by": gettext_lazy("By"),
    "until": gettext_lazy("Until"),
}


SETTINGS: Final[Mapping[str, Words]] = {  # values of a normalized request, by setting
    "mode": MODES,
    "billing_mode": COST_MODES,
    "degradation": words.DEGRADATION,
    "routing_mode": words.ROUTING_MODES,
}


def setting_said(value: str, name: str) -> str:
    return words.word(SETTINGS.get(name, words.YES_NO), value)


def field_said(name: str) -> str:
    """The name itself where there is no word for it."""
    return str(FIELDS[name]) if name in FIELDS else name


def value_said(value: Any) -> str:
    """Short: lists joined, a span from least to most, yes and no."""
    if isinstance(value, bool):
        return words.word(words.YES_NO, "yes" if value else "no")
    if isinstance(value, Mapping) and set(value) == {"min", "max"}:
        return f"{value['min']}–{value['max']}"
    if isinstance(value, Mapping):
        pairs = [{"name": field_said(name), "value": value_said(each)} for name, each in value.items()]
        return ", ".join(_("%(name)s: %(value)s") % pair for pair in pairs)
    if isinstance(value, list):
        return ", ".join(json.dumps(each) if isinstance(each, dict) else value_said(each) for each in value)
    return str(MODES[value]) if value in MODES else str(value)


def reason_said(reason: str) -> str:
    """What a person gave as the reason of a change of health; that of a maintenance is the product's own."""
    if reason == "end of maintenance":
        return _("end of maintenance")
    if reason.startswith("maintenance: "):
        return _("maintenance: %(why)s") % {"why": reason.removeprefix("maintenance: ")}
    return reason
