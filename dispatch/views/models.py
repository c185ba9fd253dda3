"""Public models: what customers ask for, how each stands, and who supplies it in which order."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog.models import AuditEntry, PublicModel
from dispatch.catalogue.repository import saved_model_facts
from dispatch.models import WorkingCopy
from dispatch.queries.bindings_now import bindings_now
from dispatch.queries.model_list import demand_for, model_lines, state_of
from dispatch.queries.off_air import off_air
from dispatch.views.access import requires
from dispatch.views.model_words import policy_facts
from dispatch.views.shell import page


@require_safe
@requires("read")
def models(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    return page(request, "console/models/list.html", {"lines": model_lines(now)}, now)


@require_safe
@requires("read")
def model(request: HttpRequest, slug: str) -> HttpResponse:
    now = timezone.now()
    row = find_model(slug)
    facts = saved_model_facts(row)
    closed = off_air(slug)
    context = {
        "model": row,
        "facts": facts,
        "state": state_of(row),
        "off_air": closed[0] if closed else None,
        "tiers": bindings_now(row, facts, row.policy.parameters, now),
        "demand": demand_for(row, now),
        "policy": policy_facts(row.policy.parameters),
        "order": row.policy.parameters.get("order", "stable_first"),
        "currency": row.policy.parameters.get("currency", "USD"),
        "copy": WorkingCopy.objects.filter(public_model=row, user=request.user.pk).first(),
        "last_change": last_change(row),
    }
    return page(request, "console/models/model.html", context, now)


def find_model(slug: str) -> PublicModel:
    found = PublicModel.objects.select_related("policy").filter(slug=slug).first()
    if found is None:
        raise Http404
    return found


def last_change(row: PublicModel) -> AuditEntry | None:
    return AuditEntry.objects.filter(subject=f"model:{row.public_id}").order_by("-at").first()
