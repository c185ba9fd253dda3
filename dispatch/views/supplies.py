"""Supplies: what can be bought, how each one does, and the switch of one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dispatch.queries.health_log import named
from dispatch.queries.impact import impact_of
from dispatch.queries.places import SupplyNow
from dispatch.queries.readiness import is_in_use
from dispatch.queries.supply_story import SupplyLine, find_supply, supply_lines, supply_past, supply_story
from dispatch.services.answer_once import answer_once
from dispatch.services.take_supply_out import take_supply_out
from dispatch.views.access import actor_of, requires
from dispatch.views.channels import road_of
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.rows import as_shown
from dispatch.views.shell import is_beat, page
from health.circuit import Subject
from health.services.switch import enable

_SWITCH: Final = "switch supply"
REASON_LENGTH: Final = 300


@require_safe
@requires("read")
def supplies(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    with_retired = request.GET.get("retired") == "1"
    lines: Sequence[SupplyLine] = supply_lines(now, with_retired)
    if is_beat(request):
        lines = as_shown(lines, request, lambda each: each.now.row.slug)
    context = {"lines": lines, "with_retired": with_retired}
    return page(request, "console/supplies/list.html", context, now)


@require_safe
@requires("read")
def supply(request: HttpRequest, slug: str) -> HttpResponse:
    now = timezone.now()
    story = supply_story(slug, now)
    if story is None:
        raise Http404
    context = {
        "story": story,
        "each": story.now,
        "row": story.now.row,
        "road": road_of(story.now.circuit),
        **({} if is_beat(request) else _around(story.now, now)),
    }
    return page(request, "console/supplies/supply.html", context, now)


def _around(supply: SupplyNow, now: datetime) -> dict[str, Any]:
    past = supply_past(supply.row, now)
    return {
        "past": past,
        "event_lines": named(past.events),
        "is_disabled": _is_disabled(supply),
        "in_use": is_in_use(supply.row, now),
    }


@require_safe
@requires("edit")
def switch(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, slug, {}, 200)


@require_POST
@requires("edit")
def switch_now(request: HttpRequest, slug: str) -> HttpResponse:
    """Off, with a reason; or on again where it is off, by probing."""
    form = confirmed(request, _SWITCH, slug)
    actor, now = actor_of(request), timezone.now()
    supply, reason = _found(slug), request.POST.get("reason", "").strip()[:REASON_LENGTH]
    ticked, faults = request.POST.getlist("losses"), dict[str, str]()

    def act() -> str | None:
        if _is_disabled(supply):
            enable(Subject.SUPPLY, supply.row.pk, actor, reason, now)
            messages.info(request, _("It is on again: it is probed first."))
        else:
            faults.update(take_supply_out(supply.row.pk, reason, ticked, actor=actor, now=now))
            if faults:
                return None
            messages.info(request, _("It is disabled: it takes nothing new."))
        return reverse("supply", args=[slug])

    went_to = answer_once(form.key, actor.name, now, act)
    typed = {"reason": reason, "ticked": ticked}
    return redirect(went_to) if went_to else _page(request, slug, {"typed": typed, "faults": faults}, 422)


def _page(request: HttpRequest, slug: str, more: Mapping[str, Any], status: int) -> HttpResponse:
    supply, now = _found(slug), timezone.now()
    impact = impact_of({slug}, now)
    context = {
        "each": supply,
        "row": supply.row,
        "as_of": now,
        "is_disabled": _is_disabled(supply),
        "impact": impact,
        "last": [loss for loss in impact if loss.is_last],
        "typed": {"reason": "", "ticked": []},
        "faults": {},
        "token": confirm_token(request, _SWITCH, slug),
        "reason_length": REASON_LENGTH,
        **more,
    }
    return render(request, "console/supplies/switch.html", context, status=status)


def _is_disabled(supply: SupplyNow) -> bool:
    """By an operator's word on its own circuit; not by its channel's."""
    health = getattr(supply.row, "health", None)
    return health is not None and health.state == "disabled"


def _found(slug: str) -> SupplyNow:
    supply = find_supply(slug)
    if supply is None:
        raise Http404
    return supply
