"""Help: the four steps with this hour's numbers, the glossary in both languages, and the keys."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, override, pgettext
from django.views.decorators.http import require_safe

from dispatch.queries.hour import MOST_ROUNDS, hour_of_steps
from dispatch.routing.explain import TITLES
from dispatch.views import settings_words
from dispatch.views.access import requires
from dispatch.views.shell import is_beat, page

_LANGUAGES: Final = ("en", "zh-hans")
# The terms of the design's glossary; where one word has several meanings, with its context.
TERMS: Final[tuple[tuple[str, str], ...]] = (
    ("", gettext_noop("Public model")),
    ("", gettext_noop("Supply binding")),
    ("", gettext_noop("Channel")),
    ("", gettext_noop("Supply")),
    ("", gettext_noop("Priority")),
    ("tier", "exact"),
    ("tier", "fallback"),
    ("tier", "degraded"),
    ("health", "Healthy"),
    ("health", "Degraded"),
    ("health", "Circuit open"),
    ("health", "Probing"),
    ("health", "Recovering"),
    ("health", "Disabled"),
    ("", gettext_noop("Degraded delivery")),
    ("", gettext_noop("Dropped input")),
    ("", gettext_noop("Draft")),
    ("", gettext_noop("Enabled")),
    ("", gettext_noop("Published")),
    ("", gettext_noop("Saved, not published")),
    ("", gettext_noop("Production gate")),
    ("", gettext_noop("Job")),
    ("", gettext_noop("Attempt")),
    ("", gettext_noop("Selection round")),
    ("", gettext_noop("Candidate")),
    ("", gettext_noop("Selected")),
    ("", gettext_noop("Ranked")),
    ("", gettext_noop("Excluded")),
    ("", gettext_noop("Supply switch")),
    ("", gettext_noop("Submission uncertain")),
    ("", gettext_noop("Content refusal")),
    ("", gettext_noop("Acknowledge")),
    ("", gettext_noop("Slot")),
    ("", gettext_noop("Lease")),
    ("", gettext_noop("Unknown slot")),
    ("", gettext_noop("Cost rule version")),
    ("", gettext_noop("Cost of a success")),
    ("", gettext_noop("Ledger")),
    ("", gettext_noop("Provider bill")),
    ("", gettext_noop("Maintenance")),
    ("", gettext_noop("Simulated")),
)


@require_safe
@requires("read")
def routing_help(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    hour = hour_of_steps(now)
    context = {
        "hour": hour,
        "most": MOST_ROUNDS,
        "steps": list(
            zip(TITLES, settings_words.STEPS, (*hour.left[:2], hour.selected, hour.switches), strict=True)
        ),
        "glossary": () if is_beat(request) else _glossary(),
    }
    return page(request, "console/help.html", context, now)


def _glossary() -> list[tuple[str, str, str, str]]:
    return [(_term("en", *term), _term("zh-hans", *term), *term) for term in TERMS]


def _term(language: str, context: str, text: str) -> str:
    with override(language):
        return pgettext(context, text) if context else _(text)
