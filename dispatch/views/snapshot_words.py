"""What a snapshot records in English, in the reader's language: details, and tiers not looked at."""

import re
from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from dispatch.views import vocabulary as words
from dispatch.views.model_words import WORDS
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
}


def details_said(details: str) -> str:
    """Empty where these words are not known: then they stand as they were recorded."""
    if said := _matched(_DETAILS, details):
        return said
    places = [_matched(_PLACES, each) for each in details.split(", ")]
    return pgettext("between the items of a list", ", ").join(places) if all(places) else ""


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
