"""Trying a supply by one paid call: what it costs is said first, what the provider answered is shown."""

from collections.abc import Mapping
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.models import Supply
from dispatch.models import TrialCall, TrialState
from dispatch.queries import readiness
from dispatch.services import try_supply as trying
from dispatch.services.answer_once import answer_once
from dispatch.trial import FIELDS, PROMPT, Unready, draft_trial, mark_of, modes_of
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.shell import page

_TRY: Final = "try supply"
_LONGEST: Final = 500
_OPEN: Final = (TrialState.ASKED, TrialState.SENDING)


@require_safe
@requires("read")
def try_supply(request: HttpRequest, slug: str) -> HttpResponse:
    """What the supply still needs, the calls that tried it, and the form of the next one."""
    supply, now = _found(slug), timezone.now()
    typed = _typed(request.GET)
    context = _context(supply)
    if typed and "try" in request.GET:
        trial = draft_trial(supply, typed, now)
        context |= _reviewed(request, supply, typed, trial)
        if isinstance(trial, Unready):
            return render(request, "console/supplies/try.html", {**context, "as_of": now}, status=422)
    return page(request, "console/supplies/try.html", context, now)


@require_POST
@requires("try")
def try_supply_now(request: HttpRequest, slug: str) -> HttpResponse:
    """Asked for in one transaction; a worker makes the call outside of any."""
    form = confirmed(request, _TRY, slug)
    supply, now = _found(slug), timezone.now()
    typed = _typed(QueryDict(request.POST.get("query", "")))
    trial = draft_trial(supply, typed, now)
    if isinstance(trial, Unready) or mark_of(trial) != form.version:
        context = {**_context(supply), **_reviewed(request, supply, typed, trial), "is_stale": True}
        return render(request, "console/supplies/try.html", {**context, "as_of": now}, status=409)
    actor = actor_of(request)

    def ask() -> str:
        asked = trying.ask_trial(trial, actor=actor, now=now)
        messages.info(request, _("The call is asked for: a worker sends it once."))
        return f"{reverse('try_supply', args=[slug])}#{asked.public_id}"

    return redirect(answer_once(form.key, actor.name, now, ask) or "supplies")


@require_POST
@requires("try")
def look_at_trial(request: HttpRequest, slug: str, trial_id: str) -> HttpResponse:
    """Asks the provider how far it is; it reads only."""
    trials = TrialCall.objects.select_related("supply__channel", "cost_rule_version")
    trial = trials.filter(supply__slug=slug, public_id=trial_id).first()
    if trial is None:
        raise Http404
    actor = actor_of(request)
    looked = trying.look_at_trial(trial, timezone.now, actor)
    messages.info(
        request, _("This is what the provider says now.") if looked else _("The provider told nothing new.")
    )
    return redirect(f"{reverse('try_supply', args=[slug])}#{trial_id}")


def _found(slug: str) -> Supply:
    supply = readiness.find_supply(slug)
    if supply is None:
        raise Http404
    return supply


def _typed(query: QueryDict) -> dict[str, str]:
    return {name: query.get(name, "").strip()[:_LONGEST] for name in FIELDS if query.get(name)}


def _context(supply: Supply) -> dict[str, Any]:
    now = timezone.now()
    version = supply.capability_version
    document: Mapping[str, Any] = version.document if version else {}
    trials = readiness.trials_of(supply)
    lost = {trial.pk for trial in trials if readiness.is_lost(trial, now)}
    durations = document.get("durations_s", ())
    return {
        "supply": supply,
        "needs": readiness.needs_of(supply, now),
        "fits": readiness.fits_of(supply),
        "trials": trials,
        "lost": lost,
        "settled": all(trial.state not in _OPEN or trial.pk in lost for trial in trials),
        "document": document,
        "modes": modes_of(supply),
        "shortest": durations.get("min") if isinstance(durations, Mapping) else (durations or [""])[0],
        "typed": {"prompt": PROMPT},
        "prompt_length": _LONGEST,
    }


def _reviewed(
    request: HttpRequest, supply: Supply, typed: Mapping[str, str], trial: TrialCall | Unready
) -> dict[str, Any]:
    if isinstance(trial, Unready):
        return {"typed": typed, "unready": trial}
    query = QueryDict(mutable=True)
    query.update(typed)
    return {
        "typed": typed,
        "trial": trial,
        "query": query.urlencode(),
        "token": confirm_token(request, _TRY, supply.slug, mark_of(trial)),
    }
