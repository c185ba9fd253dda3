"""Customers: the list, one of them, and a new one."""

from collections.abc import Mapping
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from billing.keys import SCOPES
from billing.models import Customer
from billing.priorities import LEVELS, PriorityError, parse_priorities
from billing.services.limit_customer import (
    MOST_JOBS,
    MOST_WEIGHT,
    Limits,
    fingerprint,
    limit_customer,
    limits_of,
)
from billing.services.open_customer import open_customer
from catalog.exceptions import CatalogueError, StaleRevision
from dispatch.drafting.reading import whole_number
from dispatch.queries import customer_list, cuts
from dispatch.queries.customer_list import CustomerFilter
from dispatch.services.answer_once import answer_once
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.listing import Word, query_without
from dispatch.views.shell import page

_CREATE: Final = "create customer"
_LIMIT: Final = "limit customer"
_NUMBERS: Final = ("max_in_flight", "max_queued", "weight")

type Faults = list[tuple[str, str]]  # id of the field, and what is wrong


@require_safe
@requires("read")
def customers(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    wanted, cursor = customer_list.parse_filter(request.GET), cuts.parse_cursor(request.GET)
    found = cuts.cut(customer_list.matching(wanted), cursor)
    context = {
        "wanted": wanted,
        "cursor": cursor,
        "cut": found,
        "sizes": cuts.PAGE_SIZES,
        "groups": customer_list.groups(),
        "active": _active(request, wanted),
        "keep": query_without(request.GET),
    }
    return page(request, "console/customers/list.html", context, now)


def _active(request: HttpRequest, wanted: CustomerFilter) -> list[Word]:
    told = (
        ("name", wanted.text),
        ("group", wanted.group),
        ("inactive", _("switched off") if wanted.inactive else ""),
    )
    return [(text, query_without(request.GET, name)) for name, text in told if text]


@require_safe
@requires("administer")
def new_customer(request: HttpRequest) -> HttpResponse:
    return _new_page(request, {"currency": "USD"}, [])


@require_POST
@requires("administer")
def create_customer(request: HttpRequest) -> HttpResponse:
    form = confirmed(request, _CREATE, "new")
    typed = {name: request.POST.get(name, "").strip()[:120] for name in ("name", "group", "currency")}
    actor, now = actor_of(request), timezone.now()

    def create() -> str:
        made = open_customer(typed["name"], typed["group"], typed["currency"], actor=actor, now=now)
        messages.info(request, _("%(name)s is a customer now. It has no credit and no key yet.") % typed)
        return reverse("customer", args=[made.public_id])

    try:
        return redirect(answer_once(form.key, actor.name, now, create) or reverse("customers"))
    except CatalogueError as error:
        return _new_page(request, typed, [(error.path, _said(error.path))], status=422)


def _new_page(
    request: HttpRequest, typed: Mapping[str, str], faults: Faults, status: int = 200
) -> HttpResponse:
    context = {
        "typed": typed,
        "faults": faults,
        "faulty": [name for name, _text in faults],
        "groups": customer_list.groups(),
        "token": confirm_token(request, _CREATE, "new"),
    }
    return render(request, "console/customers/new.html", context, status=status)


def _said(field: str) -> str:
    """What is wrong with a field, in the reader's language."""
    jobs = {"least": 0, "most": f"{MOST_JOBS:,}"}
    told = {
        "name": _("The name is empty or taken."),
        "currency": _("A currency is a three-letter code such as USD."),
        "group": _("There is no such group."),
        "max_in_flight": _("Running at once: a whole number from %(least)s to %(most)s.") % jobs,
        "max_queued": _("Waiting at once: a whole number from %(least)s to %(most)s.") % jobs,
        "weight": _("Weight: a whole number from 1 to %(most)s.") % {"most": f"{MOST_WEIGHT:,}"},
        "priorities": _(
            "Priorities: one project a line, as project=level, with levels from %(least)s to %(most)s."
        )
        % {"least": LEVELS.start, "most": LEVELS.stop - 1},
    }
    return told[field]


@require_safe
@requires("read")
def customer(request: HttpRequest, customer_id: str) -> HttpResponse:
    return customer_page(request, found_customer(customer_id), {})


@require_POST
@requires("edit")
def limit(request: HttpRequest, customer_id: str) -> HttpResponse:
    """New limits, group, switch and priorities; refused where somebody else changed them meanwhile."""
    row = found_customer(customer_id)
    form = confirmed(request, _LIMIT, row.public_id)
    actor, now = actor_of(request), timezone.now()
    wished, faults = _wished(request)
    if wished is None:
        return customer_page(request, row, _typed(request, faults), status=422)

    def change() -> str:
        changed = limit_customer(row, wished, actor=actor, now=now, expected=form.version)
        messages.info(
            request,
            _("Saved: it holds for jobs that come from now on.") if changed else _("Nothing differs."),
        )
        return reverse("customer", args=[row.public_id])

    try:
        return redirect(answer_once(form.key, actor.name, now, change) or reverse("customers"))
    except StaleRevision:
        said = _("Somebody changed them while you typed. Compare with what is stored, below, and save again.")
        return customer_page(
            request, row, {**_typed(request, [("limits", said)]), "stored": limits_of(row)}, status=409
        )
    except CatalogueError as error:
        return customer_page(request, row, _typed(request, [(error.path, _said(error.path))]), status=422)


def _wished(request: HttpRequest) -> tuple[Limits | None, Faults]:
    numbers = {name: whole_number(request.POST.get(name, "")) for name in _NUMBERS}
    faults = [(name, _said(name)) for name, number in numbers.items() if number is None]
    try:
        priorities = _priorities(request.POST.get("priorities", ""))
    except (PriorityError, ValueError):
        faults.append(("priorities", _said("priorities")))
    if faults:
        return None, faults
    known = {name: number for name, number in numbers.items() if number is not None}
    group, active = request.POST.get("group", "").strip(), request.POST.get("active") == "1"
    return Limits(**known, group=group, active=active, priorities=priorities), []


def _priorities(text: str) -> dict[str, int]:
    """Of lines `project=level`. Raises ValueError."""
    pairs = (line.rpartition("=") for line in text.splitlines() if line.strip())
    return parse_priorities({project.strip(): int(level) for project, _equals, level in pairs})


def _typed(request: HttpRequest, faults: Faults) -> dict[str, Any]:
    return {
        "typed": {**request.POST.dict(), "active": request.POST.get("active") == "1"},
        "faults": faults,
        "faulty": [name for name, _text in faults],
    }


def customer_page(
    request: HttpRequest, row: Customer, more: Mapping[str, Any], status: int = 200
) -> HttpResponse:
    limits = limits_of(row)
    priorities = "\n".join(f"{project}={level}" for project, level in sorted(limits.priorities.items()))
    context = {
        "as_of": timezone.now(),
        "customer": row,
        "told": customer_list.customer_now(row),
        "typed": {name: str(getattr(limits, name)) for name in _NUMBERS}
        | {"group": limits.group, "active": limits.active, "priorities": priorities},
        "levels": LEVELS,
        "groups": customer_list.groups(),
        "scopes": SCOPES,
        "limit_token": confirm_token(request, _LIMIT, row.public_id, fingerprint(limits)),
        "key_token": confirm_token(request, ISSUE, row.public_id),
        **more,
    }
    return render(request, "console/customers/customer.html", context, status=status)


ISSUE: Final = "issue api key"


def found_customer(customer_id: str) -> Customer:
    found = customer_list.find_customer(customer_id)
    if found is None:
        raise Http404
    return found
