"""Publishing: the gates as they are now, and the one button that opens a model to customers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from catalog.exceptions import StaleRevision
from catalog.models import ModelRevision, PublicModel
from dispatch.queries.bindings_now import bindings_now
from dispatch.queries.drafts import kept_version, stored_version
from dispatch.queries.model_list import demand_for, state_of
from dispatch.queries.off_air import OffAir, off_air
from dispatch.services.answer_once import answer_once
from dispatch.services.publish import GateReport, publish, review
from dispatch.services.withdraw_model import withdraw_model
from dispatch.templatetags.console import clock_text, span
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.differences import changed_fields, differences
from dispatch.views.models import find_model, last_change
from dispatch.views.review import failing_first

_PUBLISH: Final = "publish"
_WITHDRAW: Final = "withdraw"
WHY_LENGTH: Final = 300


@require_safe
@requires("read")
def publish_model(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, find_model(slug), timezone.now())


@require_POST
@requires("publish")
def publish_now(request: HttpRequest, slug: str) -> HttpResponse:
    """Opens the model where every gate lets it; else says which do not, and changes nothing."""
    row = find_model(slug)
    form = confirmed(request, _PUBLISH, slug)
    actor, now = actor_of(request), timezone.now()
    shut: list[GateReport] = []

    def open_it() -> str | None:
        closed = off_air(slug)
        result = publish(row, actor=actor, now=now, expected_revision=form.version)
        if isinstance(result, GateReport):
            shut.append(result)
            return None
        _say_published(request, result.model, closed[0] if closed else None, now)
        return reverse("model", args=[slug])

    try:
        went_to = answer_once(form.key, actor.name, now, open_it)
    except StaleRevision:
        return _page(request, find_model(slug), now, {"saved_meanwhile": form.version}, status=409)
    if went_to is None:
        return _page(request, row, now, {"refused": True, "gates": failing_first(shut[0].gates)}, status=422)
    return redirect(went_to)


def _say_published(request: HttpRequest, row: PublicModel, before: OffAir | None, now: datetime) -> None:
    said = _("Published revision %(n)s at %(time)s.") % {"n": row.revision, "time": clock_text(now)}
    if before and before.since:
        refused = ngettext("%(n)s job refused", "%(n)s jobs refused", before.refused) % {"n": before.refused}
        told = {"time": span(now - before.since), "refused": refused}
        said = f"{said} " + _("Off air %(time)s, %(refused)s.") % told
    messages.info(request, said)


@require_safe
@requires("withdraw")
def withdraw(request: HttpRequest, slug: str) -> HttpResponse:
    return _withdraw_page(request, find_model(slug))


@require_POST
@requires("withdraw")
def withdraw_now(request: HttpRequest, slug: str) -> HttpResponse:
    row = find_model(slug)
    form = confirmed(request, _WITHDRAW, slug)
    why = request.POST.get("why", "").strip()[:WHY_LENGTH]
    actor, now = actor_of(request), timezone.now()

    def close_it() -> str | None:
        if not why:
            return None
        withdraw_model(row, actor=actor, now=now, why=why)
        said = _("Taken out of production at %(time)s: customers are refused, and running work goes on.")
        messages.info(request, said % {"time": clock_text(now)})
        return reverse("model", args=[slug])

    went_to = answer_once(form.key, actor.name, now, close_it)
    return redirect(went_to) if went_to else _withdraw_page(request, row, status=422)


def _withdraw_page(request: HttpRequest, row: PublicModel, status: int = 200) -> HttpResponse:
    context = {
        "model": row,
        "state": state_of(row),
        "demand": demand_for(row, timezone.now()),
        "token": confirm_token(request, _WITHDRAW, row.slug),
        "why_length": WHY_LENGTH,
        "no_reason": status != 200,
    }
    return render(request, "console/models/withdraw.html", context, status=status)


def _page(
    request: HttpRequest,
    row: PublicModel,
    now: datetime,
    more: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """What was saved is read back from the rows, so that what is shown is what will serve."""
    stored = stored_version(row)
    last = kept_version(row, row.published_revision) if row.published_revision else None
    closed = off_air(row.slug)
    context = {
        "model": row,
        "state": state_of(row),
        "as_of": now,
        "off_air": closed[0] if closed else None,
        "gates": failing_first(review(row, now)),
        "tiers": bindings_now(row, stored.facts, stored.parameters, now),
        "order": stored.parameters.get("order", "stable_first"),
        "currency": stored.parameters.get("currency", "USD"),
        "since_last": differences(last.fields, changed_fields(last.fields, stored.fields)) if last else None,
        "saved": ModelRevision.objects.filter(public_model=row, number=row.revision).first(),
        "token": confirm_token(request, _PUBLISH, row.slug, row.revision),
        "last_change": last_change(row),
        **(more or {}),
    }
    context["failed"] = [gate for gate in context["gates"] if not gate.passed]
    return render(request, "console/models/publish.html", context, status=status)
