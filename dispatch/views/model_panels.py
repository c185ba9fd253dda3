"""Parts of a model's page that are fetched by themselves: who was given its jobs, what a publication did."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog.models import PublicModel
from dispatch.queries.hours import picks_of
from dispatch.queries.publication_watches import Watched, watched_now
from dispatch.views.access import requires
from dispatch.views.confirm import confirm_token
from dispatch.views.models import find_model
from dispatch.views.panels import panel_page
from dispatch.views.revisions import REVERT


@require_safe
@requires("read")
def model_picks(request: HttpRequest, slug: str) -> HttpResponse:
    row, now = find_model(slug), timezone.now()
    return panel_page(
        request, "console/models/picks.html", lambda: {"picks": picks_of(row, now)}, now, {"model": row}
    )


@require_safe
@requires("read")
def publication(request: HttpRequest, slug: str) -> HttpResponse:
    """The publication that is watched, or was in the last day: predicted beside actual, and the way back."""
    row, now = find_model(slug), timezone.now()

    def find() -> Mapping[str, Any]:
        watched = watched_now(row, now)
        return {"watched": watched, "token": _token(request, row, watched)}

    return panel_page(request, "console/models/publication.html", find, now, {"model": row})


def _token(request: HttpRequest, row: PublicModel, watched: Watched | None) -> str:
    """For going back to what served before, as long as the watched revision serves; else blank."""
    if watched is None or not row.published:
        return ""
    before = watched.watch.instead_of
    if before is None or watched.watch.revision != row.published_revision or before == row.published_revision:
        return ""
    return confirm_token(request, REVERT, f"{row.slug} {before}", row.revision)
