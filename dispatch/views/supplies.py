"""Supplies: what can be bought, how each one does, and the switch of one."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dispatch.queries.health_log import named
from dispatch.queries.readiness import is_in_use
from dispatch.queries.supply_story import SupplyLine, SupplyStory, supply_lines, supply_story
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
    story = _found(slug)
    context = {
        "story": story,
        "each": story.now,
        "row": story.now.row,
        "road": road_of(story.now.circuit),
        "event_lines": named(story.events),
        "is_disabled": _is_disabled(story),
        "in_use": not is_beat(request) and is_in_use(story.now.row, now),
    }
    return page(request, "console/supplies/supply.html", context, now)


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
    story, reason = _found(slug), request.POST.get("reason", "").strip()[:REASON_LENGTH]
    ticked, faults = request.POST.getlist("losses"), dict[str, str]()

    def act() -> str | None:
        if _is_disabled(story):
            enable(Subject.SUPPLY, story.now.row.pk, actor, reason, now)
            messages.info(request, _("It is on again: it is probed first."))
        else:
            faults.update(take_supply_out(story.now.row.pk, reason, ticked, actor=actor, now=now))
            if faults:
                return None
            messages.info(request, _("It is disabled: it takes nothing new."))
        return reverse("supply", args=[slug])

    went_to = answer_once(form.key, actor.name, now, act)
    typed = {"reason": reason, "ticked": ticked}
    return redirect(went_to) if went_to else _page(request, slug, {"typed": typed, "faults": faults}, 422)


def _page(request: HttpRequest, slug: str, more: Mapping[str, Any], status: int) -> HttpResponse:
    story = _found(slug)
    context = {
        "story": story,
        "each": story.now,
        "row": story.now.row,
        "as_of": timezone.now(),
        "is_disabled": _is_disabled(story),
        "last": [loss for loss in story.impact if loss.is_last],
        "typed": {"reason": "", "ticked": []},
        "faults": {},
        "token": confirm_token(request, _SWITCH, slug),
        "reason_length": REASON_LENGTH,
        **more,
    }
    return render(request, "console/supplies/switch.html", context, status=status)


def _is_disabled(story: SupplyStory) -> bool:
    """By an operator's word on its own circuit; not by its channel's."""
    health = getattr(story.now.row, "health", None)
    return health is not None and health.state == "disabled"


def _found(slug: str) -> SupplyStory:
    story = supply_story(slug, timezone.now())
    if story is None:
        raise Http404
    return story
