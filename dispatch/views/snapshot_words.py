"""What a snapshot records in English, in the reader's language: details, tiers not looked at, and why it
can't be routed again."""

import re
from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from dispatch.views import vocabulary as words
from dispatch.views.field_words import field_said, value_said
from dispatch.views.model_words import WORDS
from dispatch.views.money_words import COST_MODES
from dispatch.views.vocabulary import Words

NOT_REACHED: Final = "layer_not_reached"
_PLACES: Final[Words] = {
    r"the supply": gettext_lazy("the supply"),
    r"channel (?P<name>\S+)": gettext_lazy("channel %(name)s"),
    r"group (?P<name>\S+)": gettext_lazy("group %(name)s"),
}
_DETAILS: Final[Words] = {
    r"channel (?P<name>\S+): (?P<n>\d+) of at most (?P<most>\d+)": gettext_lazy(
        "channel %(name)s: %(n)s of at most %(most)s"
    ),
    r"the supply: (?P<n>\d+) of at most (?P<most>\d+)": gettext_lazy("the supply: %(n)s of at most %(most)s"),
    r"for (?P<seconds>[\d.e+]+) s": gettext_lazy("for %(seconds)s s"),
    r"until (?P<time>.+)": gettext_lazy("until %(time)s"),
    r"bound to channel (?P<name>\S+)": gettext_lazy("bound to channel %(name)s"),
    r"bound to (?P<name>\S+)": gettext_lazy("bound to %(name)s"),
    r"the allowed supplies of this tier come first": gettext_lazy(
        "the allowed supplies of this tier come first"
    ),
    r"the request or the model is strict": gettext_lazy("the request or the model is strict"),
    r"no verified and published rule": gettext_lazy("no verified and published rule"),
    r"no price or no exchange rate for this request": gettext_lazy(
        "no price or no exchange rate for this request"
    ),
    r"runs in an unknown region": gettext_lazy("runs in an unknown region"),
    r"runs in (?P<names>.+)": gettext_lazy("runs in %(names)s"),
    r"does not guarantee (?P<names>.+)": gettext_lazy("does not guarantee %(names)s"),
    r"(?P<amount>[\d.]+) over (?P<limit>[\d.]+)": gettext_lazy("%(amount)s, above %(limit)s"),
}
_LACK: Final = re.compile(
    r"(?P<field>\w+) (?P<value>\S+) \((?:can (?P<can>.+?)(?: with (?P<when>[^)]+))?|at most (?P<most>\d+))\)"
)
_NOTHING: Final = gettext_lazy("nothing")
_OPEN: Final = "…"  # a span without that end
UNREPLAYED: Final[Words] = {
    r"schema .+ is not .+, the one that this version replays": gettext_lazy(
        "it was recorded in a form that this version can't read"
    ),
    r"(?P<id>\S+): its document was not given": gettext_lazy("the version %(id)s that it used is not kept"),
    r"(?P<id>\S+): its document is not the one that was routed by": gettext_lazy(
        "the version %(id)s that it used reads otherwise by now"
    ),
    r"recorded in (?P<was>\w+), the draft's policy counts (?P<now>\w+)": gettext_lazy(
        "recorded in %(was)s, and the policy of the draft counts in %(now)s"
    ),
    r"supply (?P<name>\S+) has no published capability": gettext_lazy(
        "supply %(name)s has no published capability"
    ),
    r"supply (?P<name>\S+) was no candidate of this round": gettext_lazy(
        "supply %(name)s was no candidate of this round"
    ),
}


def details_said(details: str) -> str:
    """Empty where these words are not known: then they stand as they were recorded."""
    if said := _matched(_DETAILS, details) or _modes_said(details) or _tier_said(details):
        return said
    for between, known in (("; ", _lack_said), (", ", _place_said)):
        parts = [known(each) for each in details.split(between)]
        if all(parts):
            return pgettext("between the items of a list", ", ").join(parts)
    return ""


def unreplayed_said(reason: str) -> str:
    """Why a recorded round can't be routed again."""
    return _matched(UNREPLAYED, reason) or reason


def _place_said(place: str) -> str:
    return _matched(_PLACES, place)


def _tier_said(details: str) -> str:
    _tier, _space, name = details.partition("tier ")
    return words.word(words.TIERS, name) if details.startswith("tier ") and name in words.TIERS else ""


def _modes_said(details: str) -> str:
    found = re.fullmatch(r"asked (\w+), charged (\w+)", details)
    if not found:
        return ""
    asked, charged = (words.word(COST_MODES, each) for each in found.groups())
    return _("asked: %(asked)s; charged: %(charged)s") % {"asked": asked, "charged": charged}


def _lack_said(lack: str) -> str:
    """One thing that a supply can't do, as `catalog.capability` writes it."""
    if field_said(lack) != lack:
        return _("%(field)s: it can't") % {"field": field_said(lack)}
    found = _LACK.fullmatch(lack)
    if found is None or field_said(found["field"]) == found["field"]:
        return ""
    told = {"field": field_said(found["field"]), "value": _value_said(found["value"])}
    if found["most"]:
        return _("%(field)s: %(value)s (at most %(most)s)") % (told | {"most": found["most"]})
    told |= {"can": _allowed_said(found["can"]), "when": _when_said(found["when"] or "")}
    if told["when"]:
        return _("%(field)s: %(value)s (with %(when)s only %(can)s)") % told
    return _("%(field)s: %(value)s (only %(can)s)") % told


def _allowed_said(allowed: str) -> str:
    """A span, or a list of values."""
    least, to, most = allowed.partition(" to ")
    if not to:
        return pgettext("between the items of a list", ", ").join(map(_value_said, allowed.split(", ")))
    if _OPEN in (least, most):
        sentence = _("%(n)s or less") if least == _OPEN else _("%(n)s or more")
        return sentence % {"n": most if least == _OPEN else least}
    return _("%(least)s to %(most)s") % {"least": least, "most": most}


def _when_said(when: str) -> str:
    pairs = [each.partition(" ") for each in when.split(" and ")] if when else []
    said = [f"{field_said(name)} {_value_said(value)}" for name, _space, value in pairs]
    return pgettext("between the items of a list", ", ").join(said)


def _value_said(value: str) -> str:
    """Of a request's field: yes and no, a mode, or what it is."""
    if value.lower() in ("true", "false"):
        return words.word(words.YES_NO, "yes" if value.lower() == "true" else "no")
    return str(_NOTHING) if value == "nothing" else str(COST_MODES.get(value, value_said(value)))


def _matched(known: Words, text: str) -> str:
    for pattern, sentence in known.items():
        if found := re.fullmatch(pattern, text):
            return str(sentence) % found.groupdict()
    return ""


def not_reached_said(tier: str, recorded: Mapping[str, Any]) -> str:
    """Why nobody of the tier was looked at: an earlier one took the job, or keeps it waiting for a slot."""
    decision, policy = recorded["decision"], recorded["policy"]
    decided = (decision["layer"] or {}).get("tier", "")
    if not decided:
        return _("An earlier tier decided; this one was not looked at.")
    earlier = words.word(words.TIERS, decided)
    if decision["outcome"] == "chosen":
        return _("A supply of the tier “%(tier)s” took the job: this one was not looked at.") % {
            "tier": earlier
        }
    said = _(
        "The tier “%(tier)s” still counts as available: it waits only for a free slot or for unknown"
        " outcomes, so the policy keeps the job there."
    ) % {"tier": earlier}
    if (decided, tier) == ("exact", "fallback") and not policy.get("spill_when_saturated"):
        said = _("%(first)s %(second)s") % {
            "first": said,
            "second": _("The policy's setting “%(setting)s” would open this one.")
            % {"setting": WORDS["spill_when_saturated"].label},
        }
    return said
