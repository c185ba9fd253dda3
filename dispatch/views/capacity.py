"""Capacity: which slots are taken, by whom, and how many there are."""

from collections.abc import Mapping
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.models import CapacityGroup
from dispatch.drafting.reading import whole_number
from dispatch.queries.capacity_now import capacity_now, find_limited
from dispatch.queries.fullness import fullness
from dispatch.services.answer_once import answer_once
from dispatch.services.change_limit import Limited, StaleLimit, change_limit, limit_of
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.panels import panel
from dispatch.views.shell import page

_CHANGE: Final = "change limit"
REASON_LENGTH: Final = 300
MOST: Final = 1_000_000  # slots


@require_safe
@requires("read")
def capacity(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    found = capacity_now(now)
    how_full = panel("fullness", lambda: fullness(found.channels, found.groups, now), now)
    return page(request, "console/capacity/now.html", {"found": found, "fullness": how_full}, now)


@require_safe
@requires("edit")
def limit(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    return _page(request, kind, name, {}, 200)


@require_POST
@requires("edit")
def set_limit(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    row = _found(kind, name)
    form = confirmed(request, _CHANGE, f"{kind}:{name}")
    typed = {field: request.POST.get(field, "").strip() for field in ("limit", "reason")}
    wanted, reason = whole_number(typed["limit"]), typed["reason"][:REASON_LENGTH]
    faults = _faults(wanted, reason)
    if faults or wanted is None:
        return _page(request, kind, name, {"typed": typed, "faults": faults}, 422)
    actor, now = actor_of(request), timezone.now()

    def change() -> str:
        change_limit(row, wanted, expected=form.version, reason=reason, actor=actor, now=now)
        messages.info(request, _("The limit of %(name)s is %(n)s now.") % {"name": _name(row), "n": wanted})
        return reverse("capacity")

    try:
        return redirect(answer_once(form.key, actor.name, now, change) or "capacity")
    except StaleLimit as stale:
        return _page(request, kind, name, {"typed": typed, "changed_to": stale.limit}, 409)


def _faults(wanted: int | None, reason: str) -> dict[str, str]:
    found = {}
    if wanted is None or not 1 <= wanted <= MOST:
        found["limit"] = "no_limit"
    if not reason:
        found["reason"] = "no_reason"
    return found


def _page(request: HttpRequest, kind: str, name: str, more: Mapping[str, Any], status: int) -> HttpResponse:
    row = _found(kind, name)
    now = limit_of(row)
    context = {
        "kind": kind,
        "name": name,
        "label": _name(row),
        "limit_now": now,
        "typed": {"limit": str(now), "reason": ""},
        "faults": {},
        "token": confirm_token(request, _CHANGE, f"{kind}:{name}", now),
        "reason_length": REASON_LENGTH,
        **more,
    }
    return render(request, "console/capacity/limit.html", context, status=status)


def _name(row: Limited) -> str:
    if isinstance(row, CapacityGroup):
        return _("%(account)s at %(endpoint)s") % {"account": row.account, "endpoint": row.endpoint}
    return row.slug


def _found(kind: str, name: str) -> Limited:
    row = find_limited(kind, name)
    if row is None:
        raise Http404
    return row
