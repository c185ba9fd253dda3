"""Taking a channel out for maintenance and bringing it back: each says first what it does, and to whom."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dispatch.maintenance import Wanted
from dispatch.models import Maintenance
from dispatch.queries.channel_story import impact_without
from dispatch.queries.places import Circuit
from dispatch.services.answer_once import answer_once
from dispatch.services.end_maintenance import end_maintenance
from dispatch.services.start_maintenance import start_maintenance
from dispatch.templatetags.console import clock_text
from dispatch.views.access import actor_of, requires
from dispatch.views.channels import found_channel, road_of
from dispatch.views.confirm import confirm_token, confirmed

_START: Final = "start maintenance"
_END: Final = "end maintenance"
REASON_LENGTH: Final = 280
_USUALLY: Final = timedelta(hours=2)


@require_safe
@requires("edit")
def maintenance(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, slug, {}, 200)


@require_POST
@requires("edit")
def start(request: HttpRequest, slug: str) -> HttpResponse:
    form = confirmed(request, _START, slug)
    actor, now = actor_of(request), timezone.now()
    channel, typed = found_channel(slug).row, _typed(request)
    faults: dict[str, str] = {}

    def take_out() -> str | None:
        wanted = Wanted(typed["mode"], _moment(typed["until"]), typed["at_end"], typed["reason"])
        done = start_maintenance(channel.pk, wanted, typed["ticked"], actor=actor, now=now)
        if isinstance(done, Maintenance):
            messages.info(request, _("In maintenance until %(time)s.") % {"time": clock_text(done.until_at)})
            return reverse("channel", args=[slug])
        faults.update(done)
        return None

    went_to = answer_once(form.key, actor.name, now, take_out)
    return redirect(went_to) if went_to else _page(request, slug, {"typed": typed, "faults": faults}, 422)


@require_POST
@requires("edit")
def end(request: HttpRequest, slug: str) -> HttpResponse:
    form = confirmed(request, _END, slug)
    actor, now = actor_of(request), timezone.now()
    current = found_channel(slug).now.maintenance

    def bring_back() -> str:
        if current is not None and end_maintenance(current.pk, actor=actor, now=now):
            messages.info(request, _("The maintenance is over: the channel is probed first."))
        return reverse("channel", args=[slug])

    return redirect(answer_once(form.key, actor.name, now, bring_back) or "channels")


def _typed(request: HttpRequest) -> dict[str, Any]:
    typed = {name: request.POST.get(name, "").strip() for name in ("mode", "until", "at_end", "reason")}
    return {**typed, "reason": typed["reason"][:REASON_LENGTH], "ticked": request.POST.getlist("losses")}


def _moment(text: str) -> datetime | None:
    """As a browser's field of date and time gives it, in the zone that the page names."""
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    if found is None:
        return None
    return found if timezone.is_aware(found) else timezone.make_aware(found)


def _page(request: HttpRequest, slug: str, more: Mapping[str, Any], status: int) -> HttpResponse:
    """The form that starts it; where one goes on, the page that ends it."""
    now = timezone.now()
    story = found_channel(slug)
    goes_on, impact = story.now.maintenance is not None, impact_without(story.now, now)
    suggested = timezone.localtime(now + _USUALLY).replace(second=0, microsecond=0, tzinfo=None)
    typed = {"mode": "drain", "at_end": "probe", "until": suggested.isoformat("T", "minutes"), "ticked": []}
    context = {
        "story": story,
        "channel": story.now,
        "row": story.row,
        "as_of": now,
        "typed": typed,
        "faults": {},
        "impact": impact,
        "last": [loss for loss in impact if loss.is_last],
        "token": confirm_token(request, _END if goes_on else _START, slug),
        "road": road_of(Circuit("probing", 0, None, "channel")),
        "reason_length": REASON_LENGTH,
        **more,
    }
    template = "console/channels/end.html" if goes_on else "console/channels/start.html"
    return render(request, template, context, status=status)
