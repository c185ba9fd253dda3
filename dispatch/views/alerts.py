"""Alerts: see them, own them, close them out. Acknowledging is not resolving."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dispatch.queries import alert_list, alert_subjects
from dispatch.queries.alert_list import AlertFilter
from dispatch.queries.search import find
from dispatch.services import acknowledge_alerts, own_alert
from dispatch.services.acknowledge_alerts import MOST
from dispatch.templatetags.console import clock_text
from dispatch.views import alert_words
from dispatch.views import vocabulary as words
from dispatch.views.access import actor_of, requires
from dispatch.views.alert_bulk import NOTE_LENGTH
from dispatch.views.alert_cards import cards_of
from dispatch.views.alert_guidance import guidance_of
from dispatch.views.bulk import filter_of, ticked_of, with_moment
from dispatch.views.rows import rows_on_screen
from dispatch.views.session import local_next
from dispatch.views.shell import answer_beat, is_beat, page, shell
from health.models import Alert
from health.services.redeliver import redeliver


@require_safe
@requires("read")
def alerts(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    wanted = alert_list.parse_filter(request.GET)
    if is_beat(request):
        return page(request, "console/alerts.html", _beat(request, wanted, now), now)
    groups = alert_list.alert_groups(now, wanted)
    last = alert_list.last_resolved() if groups.all_quiet else None
    together = [alert for alert in groups.firing if alert.severity != "critical"]
    query, ticked = filter_of(request.GET), ticked_of(request.GET, MOST)
    context = {
        "groups": groups,
        "cards": cards_of(groups, alert_subjects.about(groups.all), ticked, now),
        "last_resolved": last,
        "hide_strips": True,
        "wanted": wanted,
        "codes": sorted(words.ALERTS.items(), key=lambda each: str(each[1])),
        "severities": words.SEVERITIES.items(),
        "active": alert_words.active(request.GET, wanted),
        "can_be_ticked": bool(together),
        "unacknowledged": sum(alert.acknowledged_at is None for alert in together),
        "matching": "&".join(filter(None, (query, with_moment(now)))),
    }
    return page(request, "console/alerts.html", context, now)


def _beat(request: HttpRequest, wanted: AlertFilter, now: datetime) -> dict[str, Any]:
    """The alerts on the screen, each where it stands; and how many came since."""
    told, ticked = rows_on_screen(request), ticked_of(request.GET, MOST)
    shown = alert_list.groups_again(told)
    return {
        "cards": cards_of(shown, alert_subjects.about(shown.all), ticked, now),
        "wanted": wanted,
        "arrived": alert_list.arrived(now, wanted, told),
    }


@require_safe
@requires("read")
def alert(request: HttpRequest, alert_id: str) -> HttpResponse:
    now = timezone.now()
    found = _found(alert_id)
    context = {
        "alert": found,
        "about": alert_subjects.about([found])[found.public_id],
        "similar": alert_list.similar(found, now),
        "evidence": _evidence(found),
        "deliveries": alert_list.deliveries(found),
        "steps": alert_list.steps_by_people(found),
        "guidance": guidance_of(found.code, _with_subject(found)),
        "hide_strips": True,
        "note_length": NOTE_LENGTH,
    }
    return page(request, "console/alert.html", context, now)


@require_POST
@requires("acknowledge")
def acknowledge_alert(request: HttpRequest, alert_id: str) -> HttpResponse:
    """Records who and when. Twice, or by two people at once, records the first and says so."""
    found = _found(alert_id)
    note = request.POST.get("note", "").strip()[:NOTE_LENGTH]
    first = acknowledge_alerts.acknowledge_alert(found, note, actor=actor_of(request), now=timezone.now())
    found.refresh_from_db()
    messages.info(request, _acknowledged(found, first))
    return redirect(local_next(request, "alert", found.public_id))


@require_POST
@requires("acknowledge")
def own(request: HttpRequest, alert_id: str) -> HttpResponse:
    """Takes it over, gives it back, or notes something on it, as the pressed button says."""
    found, now = _found(alert_id), timezone.now()
    actor, wish = actor_of(request), request.POST.get("do", "")
    note = request.POST.get("note", "").strip()[:NOTE_LENGTH]
    said = _("Nothing was changed.")
    if wish == "take_over" and own_alert.take_over(found.pk, actor=actor, now=now):
        said = _("You are on it now.")
    elif wish == "unacknowledge" and own_alert.unacknowledge(found.pk, actor=actor, now=now):
        said = _("It is not acknowledged any more.")
    elif wish == "note" and note:
        own_alert.note_on_alert(found.pk, note, actor=actor, now=now)
        said = _("Noted.")
    messages.info(request, said)
    return redirect("alert", found.public_id)


@require_POST
@requires("acknowledge")
def redeliver_alert(request: HttpRequest, alert_id: str) -> HttpResponse:
    """Sends one message about the alert again. What is still on its way stays on it, and the page says so."""
    found = _found(alert_id)
    actor = actor_of(request)
    queued = redeliver(request.POST.get("delivery", ""), actor, timezone.now(), of_alert=found.pk)
    messages.info(request, _("It is sent again.") if queued else _("It is still on its way."))
    return redirect(local_next(request, "alert", found.public_id))


@require_safe
@requires("read")
def strips(request: HttpRequest) -> HttpResponse:
    """The beat of every page: what is critical and not acknowledged, in strips, header and navigation."""
    around = shell(request)["shell"]
    context = {
        "hide_strips": request.GET.get("hide") == "1",
        "strips_on": request.htmx.current_url_abs_path or "",  # type: ignore[attr-defined]
        "shell": {name: around[name] for name in ("may", "alarms", "off_air", "numbers")},
    }
    return answer_beat(request, "console/strips_beat.html", context, timezone.now())


def _evidence(alert: Alert) -> list[tuple[str, str, str]]:
    """What was measured: name, value, and where it is shown, or ""."""
    return [(name, str(value), _page_of(name, str(value))) for name, value in _with_subject(alert).items()]


def _with_subject(alert: Alert) -> dict[str, Any]:
    kind, _colon, subject = alert.subject.partition(":")
    return {kind: subject, **alert.details}


def _page_of(name: str, value: str) -> str:
    is_linked = name in ("channel", "supply", "model") or value.startswith(("job_", "att_", "hev_"))
    hits = find(value) if is_linked else []
    return hits[0].url if len(hits) == 1 else ""


def _acknowledged(alert: Alert, first: bool) -> str:
    at = clock_text(alert.acknowledged_at) if alert.acknowledged_at else ""
    said = (
        _("Acknowledged by %(by)s at %(time)s. It is not resolved by that.")
        if first
        else _("Already acknowledged by %(by)s at %(time)s.")
    )
    return said % {"by": alert.acknowledged_by, "time": at}


def _found(alert_id: str) -> Alert:
    found = alert_list.find_alert(alert_id)
    if found is None:
        raise Http404
    return found
