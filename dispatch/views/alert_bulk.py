"""Acknowledging several alerts at once: those that are ticked, or all warnings that the filter matches.

Critical ones are not among them: each is acknowledged on its own."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from dispatch.queries import alert_list
from dispatch.services.acknowledge_alerts import MOST, CriticalTicked, acknowledge_alerts
from dispatch.services.answer_once import answer_once
from dispatch.views import alert_words
from dispatch.views.access import actor_of, requires
from dispatch.views.bulk import (
    SAMPLES,
    TICKED,
    Bulk,
    bulk_token,
    confirmed_bulk,
    filter_of,
    moment_of,
    ticked_of,
)
from dispatch.views.session import local_next

_ACTION: Final = "acknowledge alerts"
NOTE_LENGTH: Final = 500


@require_POST
@requires("acknowledge")
def acknowledge_ticked(request: HttpRequest) -> HttpResponse:
    """Returns to the list that it was sent from, with the same rows ticked."""
    ticked = ticked_of(request.POST, MOST)
    back = local_next(request, "alerts")
    if not ticked:
        messages.info(request, _("Nothing was ticked: nothing was changed."))
        return redirect(back)
    actor = actor_of(request)
    try:
        done, were = acknowledge_alerts(ticked, _note(request), actor=actor, now=timezone.now())
    except CriticalTicked as refused:
        context = {"critical": refused.alerts, "back": back, "as_of": timezone.now(), "hide_strips": True}
        return render(request, "console/alerts/refused.html", context, status=422)
    messages.info(request, _told(done, were))
    return redirect(_still_ticked(back, ticked))


@require_safe
@requires("acknowledge")
def acknowledge_matching(request: HttpRequest) -> HttpResponse:
    """What would be acknowledged, before it is."""
    return _page(request, _bulk(request.GET), 200)


@require_POST
@requires("acknowledge")
def acknowledge_matching_now(request: HttpRequest) -> HttpResponse:
    wanted = QueryDict(request.POST.get("query", ""))
    now, actor = timezone.now(), actor_of(request)
    bulk = _bulk(wanted)
    form = confirmed_bulk(request, _ACTION, bulk)
    if form is None:
        return _page(request, bulk, 409)

    def act() -> str | None:
        alerts = alert_list.to_acknowledge(alert_list.parse_filter(wanted), bulk.as_of)
        ids = list(alerts.values_list("public_id", flat=True)[:MOST])
        done, were = acknowledge_alerts(ids, _note(request), actor=actor, now=now)
        if done != bulk.count:
            return None
        messages.info(request, _told(done, were))
        return f"{reverse('alerts')}?{bulk.query}"

    went_to = answer_once(form.key, actor.name, now, act)
    return redirect(went_to) if went_to else _page(request, _bulk(wanted), 409)


def _bulk(query: QueryDict) -> Bulk:
    """At most MOST of them, the oldest first: that many are counted."""
    as_of = moment_of(query, timezone.now())
    alerts = alert_list.to_acknowledge(alert_list.parse_filter(query), as_of)
    return Bulk(filter_of(query), as_of, len(alerts.values_list("pk")[:MOST]))


def _page(request: HttpRequest, bulk: Bulk, status: int) -> HttpResponse:
    wanted = alert_list.parse_filter(QueryDict(bulk.query))
    alerts = alert_list.to_acknowledge(wanted, bulk.as_of)
    context = {
        "bulk": bulk,
        "is_stale": status != 200,
        "words": [text for text, _query in alert_words.active(QueryDict(bulk.query), wanted)],
        "samples": list(alerts[:SAMPLES]),
        "is_capped": bulk.count == MOST,
        "token": bulk_token(request, _ACTION, bulk),
        "note_length": NOTE_LENGTH,
        "as_of": timezone.now(),
    }
    return render(request, "console/alerts/matching.html", context, status=status)


def _note(request: HttpRequest) -> str:
    return request.POST.get("note", "").strip()[:NOTE_LENGTH]


def _told(done: int, were: int) -> str:
    said = ngettext(
        "%(n)s alert is acknowledged. It is not resolved by that.",
        "%(n)s alerts are acknowledged. They are not resolved by that.",
        done,
    ) % {"n": done}
    if not were:
        return said
    earlier = ngettext("%(n)s was before.", "%(n)s were before.", were) % {"n": were}
    return _("%(first)s %(second)s") % {"first": said, "second": earlier}


def _still_ticked(back: str, ticked: object) -> str:
    """The list's own address, with the rows that were ticked."""
    path, _question, query = back.partition("?")
    values = QueryDict(query, mutable=True)
    values.setlist(TICKED, ticked)  # type: ignore[arg-type]
    return f"{path}?{values.urlencode()}"
