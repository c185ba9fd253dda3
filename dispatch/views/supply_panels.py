"""Parts of a supply's page that are fetched by themselves: what it really made, and what a success cost."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog.models import Supply
from dispatch.queries.hours import costs
from dispatch.queries.seen import seen_at
from dispatch.views.access import requires
from dispatch.views.panels import panel_page


@require_safe
@requires("read")
def supply_seen(request: HttpRequest, slug: str) -> HttpResponse:
    row, now = _found(slug), timezone.now()
    declared = row.capability_version.document if row.capability_version else {}
    return panel_page(
        request,
        "console/supplies/seen.html",
        lambda: {"seen": seen_at(row, declared, now)},
        now,
        {"row": row},
    )


@require_safe
@requires("read")
def supply_costs(request: HttpRequest, slug: str) -> HttpResponse:
    row, now = _found(slug), timezone.now()
    return panel_page(
        request, "console/supplies/costs.html", lambda: {"costs": costs(now, row)}, now, {"row": row}
    )


def _found(slug: str) -> Supply:
    row = Supply.objects.select_related("channel", "capability_version").filter(slug=slug).first()
    if row is None:
        raise Http404
    return row
