"""The first page: is traffic flowing, what needs a person, what changed. Each part fails alone."""

from datetime import timedelta
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dispatch.queries import changes, hours, needs
from dispatch.views.access import requires
from dispatch.views.panels import panel, panel_page
from dispatch.views.shell import page

_DAY: Final = timedelta(days=1)


@require_safe
@requires("read")
def overview(request: HttpRequest) -> HttpResponse:
    """What is asked here is quick whatever runs; what may be slow has an address of its own."""
    now = timezone.now()
    context = {
        "jobs": panel("jobs", lambda: needs.jobs_now(now), now),
        "needs": panel("needs", needs.needs_now, now),
        "channels": panel("channels", needs.channel_states, now),
    }
    return page(request, "console/overview/overview.html", context, now)


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
