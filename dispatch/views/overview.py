"""The first page: is traffic flowing, what needs a person, what changed. Each part fails alone."""

from datetime import timedelta
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dispatch.queries import changes, hours, needs
from dispatch.views.access import requires
from dispatch.views.panels import Panel, panel, panel_page
from dispatch.views.shell import page
from dispatch.views.waiting_words import verdict_sentence
from dispatch.waiting import Code

_DAY: Final = timedelta(days=1)


@require_safe
@requires("read")
def overview(request: HttpRequest) -> HttpResponse:
    """What is asked here is quick whatever runs; what may be slow has an address of its own."""
    now = timezone.now()
    jobs = panel("jobs", lambda: needs.jobs_now(now), now)
    waits = panel("needs", needs.needs_now, now)
    context = {
        "jobs": jobs,
        "needs": waits,
        "why": verdict_sentence(jobs.found.verdict) if jobs.found else "",
        "tone": _tone(jobs, waits),
        "channels": panel("channels", needs.channel_states, now),
    }
    return page(request, "console/overview/overview.html", context, now)


def _tone(jobs: Panel[needs.JobsNow], waits: Panel[needs.Needs]) -> str:
    """`good` only where it is known that jobs move and that nobody is needed. Full slots are no alarm: such
    jobs move with the next slot that becomes free."""
    if jobs.found is None or waits.found is None:
        return "doubt"
    said = jobs.found.verdict
    if said.reason == Code.DISPATCHER_SILENT:
        return "bad"
    if said.reason and said.jobs == said.waiting and said.reason != Code.CAPACITY_FULL:
        return "bad"
    return "doubt" if said.reason or waits.found.needs or jobs.found.is_stuck else "good"


@require_safe
@requires("read")
def overview_charts(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    return panel_page(
        request,
        "console/overview/charts.html",
        lambda: {"day": hours.day_of_charts(now)},
        now,
        {},
    )


@require_safe
@requires("read")
def overview_changes(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    return panel_page(
        request,
        "console/overview/changes.html",
        lambda: {"found": changes.changes_since(now - _DAY)},
        now,
        {},
    )
