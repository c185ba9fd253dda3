"""Public models: what customers ask for, how each stands, and who supplies it in which order."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog.models import AuditEntry, PublicModel
from dispatch.catalogue.repository import saved_model_facts
from dispatch.models import WorkingCopy
from dispatch.queries.bindings_now import TierNow, bindings_now, next_in_line
from dispatch.queries.hours import days_of_models, picks_of
from dispatch.queries.model_list import model_lines, state_of, waiting_for
from dispatch.queries.off_air import off_air
from dispatch.queries.publication_watches import is_watched
from dispatch.queries.success import success_of
from dispatch.views.access import person, requires
from dispatch.views.model_words import policy_facts
from dispatch.views.panels import panel
from dispatch.views.shell import is_beat, page


@require_safe
@requires("read")
def models(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    context = {"lines": model_lines(now), "days": panel("days", lambda: days_of_models(now), now)}
    return page(request, "console/models/list.html", context, now)


@require_safe
@requires("read")
def model(request: HttpRequest, slug: str) -> HttpResponse:
    now = timezone.now()
    row = find_model(slug)
    around = {} if is_beat(request) else _around(row, person(request), now)
    return page(request, "console/models/model.html", {"model": row, **around, **_live(row, now)}, now)


def _live(row: PublicModel, now: datetime) -> dict[str, Any]:
    """What changes while the page stands there."""
    facts = saved_model_facts(row)
    closed = off_air(row.slug) if not row.published else []
    tiers = bindings_now(row, facts, row.policy.parameters, now)
    return {
        "facts": facts,
        "off_air": closed[0] if closed else None,
        "tiers": tiers,
        "line_up": next_in_line(tiers),
        "picks": panel("picks", lambda: picks_of(row, now), now),
        "success": panel("success", lambda: success_of(_supplies(tiers), now), now),
        "waiting": waiting_for(row),
        "order": row.policy.parameters.get("order", "stable_first"),
        "currency": row.policy.parameters.get("currency", "USD"),
    }


def _around(row: PublicModel, user: User, now: datetime) -> dict[str, Any]:
    return {
        "state": state_of(row),
        "is_watched": is_watched(row, now),
        "policy": policy_facts(row.policy.parameters),
        "copy": WorkingCopy.objects.filter(public_model=row, user=user).first(),
        "last_change": last_change(row),
    }


def _supplies(tiers: Iterable[TierNow]) -> set[int]:
    return {each.supply.pk for tier in tiers for each in tier.bindings}


def find_model(slug: str) -> PublicModel:
    found = PublicModel.objects.select_related("policy").filter(slug=slug).first()
    if found is None:
        raise Http404
    return found


def last_change(row: PublicModel) -> AuditEntry | None:
    return AuditEntry.objects.filter(subject=f"model:{row.public_id}").order_by("-at").first()
