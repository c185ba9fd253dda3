"""Cost rules: what each supply charges, a new version of it, and the taking back of a planned one."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from billing.models import CostRule, CostRuleVersion
from billing.services.cancel_price import cancel_price
from billing.services.publish_price import publish_price
from billing.services.schedule_price import PriceClash, clash_free, schedule_price
from billing.starts import StartError, clocks_change, next_monday, read_start
from catalog.exceptions import CatalogueError
from catalog.hashing import document_hash
from catalog.models import AuditEntry, Supply
from dispatch import price_form
from dispatch.price_form import FormError
from dispatch.queries import prices as queries
from dispatch.services.answer_once import answer_once
from dispatch.templatetags.console import zone_name
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.shell import page
from dispatch.views.zones import in_reporting_zone, reporting_zone

_SCHEDULE: Final = "schedule price"
_CANCEL: Final = "cancel price"
_NOW: Final = "now"
_MONDAY: Final = "monday"
_AT: Final = "at"
_STARTS: Final = (_NOW, _MONDAY, _AT)


@require_safe
@requires("read")
@in_reporting_zone
def prices(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    with_retired = request.GET.get("retired") == "1"
    context = {"lines": queries.price_list(now, with_retired), "with_retired": with_retired}
    return page(request, "console/prices/list.html", context, now)


@require_safe
@requires("read")
@in_reporting_zone
def price(request: HttpRequest, slug: str) -> HttpResponse:
    now = timezone.now()
    supply = _found(slug)
    versions = [(each, queries.state_of(each, now)) for each in queries.versions_of(supply)]
    in_force, planned = _first(versions, "in_force"), _next_planned(versions)
    document = in_force.document if in_force else None
    context = {
        "supply": supply,
        "versions": versions,
        "in_force": in_force,
        "planned": planned,
        "ends_at": (planned or in_force).effective_to if (planned or in_force) else None,  # type: ignore[union-attr]
        "examples": queries.example_prices(supply, document, planned.document if planned else None),
        "last_change": AuditEntry.objects.filter(subject=f"supply:{supply.public_id}")
        .order_by("-at")
        .first(),
    }
    return page(request, "console/prices/price.html", context, now)


def _first(versions: list[tuple[CostRuleVersion, str]], state: str) -> CostRuleVersion | None:
    return next((version for version, found in versions if found == state), None)


def _next_planned(versions: list[tuple[CostRuleVersion, str]]) -> CostRuleVersion | None:
    planned = [version for version, state in versions if state == "scheduled"]
    return min(planned, key=lambda version: version.effective_from, default=None)


@require_safe
@requires("price")
@in_reporting_zone
def new_price(request: HttpRequest, slug: str) -> HttpResponse:
    """Prefilled from the version in force, or the newest."""
    supply, now = _found(slug), timezone.now()
    versions = [(each, queries.state_of(each, now)) for each in queries.versions_of(supply)]
    start = _first(versions, "in_force") or next((version for version, _state in versions), None)
    document = start.document if start else {"mode": "per_second", "currency": "USD"}
    typed = {"start": _MONDAY, "start_at": ""}
    return _form(request, supply, price_form.texts_of(document), typed, [], now)


@require_safe
@requires("price")
@in_reporting_zone
def review_price(request: HttpRequest, slug: str) -> HttpResponse:
    """What the new version would change, before anything is stored."""
    supply, now = _found(slug), timezone.now()
    fields, row = request.GET.dict(), request.GET.get("do", "")
    typed = {name: request.GET.get(name, "") for name in ("start", "start_at")}
    if row in price_form.ROWS:
        longer = price_form.texts_posted(price_form.with_another_row(fields, row))
        return _form(request, supply, longer, typed, [], now)
    texts = price_form.texts_posted(fields)
    try:
        document = price_form.document_of(texts, supply.modality)
        start = _start(typed, now)
        present = _check(supply, document, start, now)
    except FormError as error:
        return _form(request, supply, texts, typed, [(error.field, fault_said(error.field))], now, status=422)
    except PriceClash as clash:
        return _form(request, supply, texts, typed, [("start", _clash(clash))], now, status=422)
    subject = _subject(supply, document, start)
    context = {
        "as_of": now,
        "supply": supply,
        "document": document,
        "document_text": json.dumps(document),
        "start": start,
        "present": present,
        "zone_name": str(reporting_zone()),
        "clocks_change": start is not None and clocks_change(now, start, reporting_zone()),
        "examples": queries.example_prices(supply, present.document if present else None, document),
        "recosted": queries.recosted(supply, present.document if present else None, document, now),
        "token": confirm_token(request, _SCHEDULE, subject),
        "back": request.GET.urlencode(),
    }
    return render(request, "console/prices/review.html", context)


def _start(typed: Mapping[str, str], now: datetime) -> datetime | None:
    """None: at once. Raises FormError."""
    choice = typed["start"]
    if choice not in _STARTS:
        raise FormError("start")
    if choice == _NOW:
        return None
    if choice == _MONDAY:
        return next_monday(now, reporting_zone())
    try:
        start = read_start(typed["start_at"], reporting_zone())
    except StartError as error:
        raise FormError("start_at") from error
    if start <= now:
        raise FormError("start_at")
    return start


def _check(
    supply: Supply, document: Mapping[str, Any], start: datetime | None, now: datetime
) -> CostRuleVersion | None:
    """The version that applies until `start`. Raises FormError where nothing differs, PriceClash."""
    rule = CostRule.objects.filter(supply=supply).first()
    if start is not None:
        former = clash_free(rule, start) if rule else None
    else:
        states = [(each, queries.state_of(each, now)) for each in queries.versions_of(supply)]
        former = _first(states, "in_force")
    if former and queries.is_same_price(former.document, document, supply.modality):
        raise FormError("unit-same")
    return former


def _form(
    request: HttpRequest,
    supply: Supply,
    texts: price_form.Texts,
    typed: Mapping[str, str],
    faults: list[tuple[str, str]],
    now: datetime,
    status: int = 200,
) -> HttpResponse:
    shown = [("unit" if field == "unit-same" else field, text) for field, text in faults]
    context = {
        "as_of": now,
        "supply": supply,
        "texts": texts,
        "typed": typed,
        "faults": shown,
        "faulty": [field for field, _text in shown],
        "modes": price_form.MODES,
        "monday": next_monday(now, reporting_zone()),
        "zone_name": str(reporting_zone()),
    }
    return render(request, "console/prices/new.html", context, status=status)


def fault_said(field: str) -> str:
    told = {
        "unit-same": _("Nothing differs from the version that applies until then."),
        "unit": _("The unit price is an amount such as 0.05, or there are whole prices."),
        "currency": _("A currency is a three-letter code such as USD."),
        "min_s": _("The least length is a number of seconds."),
        "step_s": _("The step is a number of seconds above 0."),
        "per_credit": _("The price of a credit is an amount such as 0.01."),
        "start": _("Choose when it starts."),
        "start_at": _("The start is a time to come that the clocks of the zone show."),
    }
    if field.startswith("bracket"):
        return _("A whole price has a length from, a length to and an amount, and overlaps no other.")
    if field.startswith("multiplier"):
        return _("A factor is a number such as 1.5; its condition names fields, such as resolution=1080p.")
    return told.get(field, _("This cannot be read."))


def _clash(clash: PriceClash) -> str:
    version = clash.other
    told = {
        "n": version.number,
        "from": _time_text(version.effective_from),
        "to": _time_text(version.effective_to),
    }
    if clash.kind == "overlap":
        return (
            _("It would overlap version %(n)s, which begins at %(from)s. Cancel that one, or start later.")
            % told
        )
    return _("It would leave a gap: version %(n)s ends at %(to)s. Start then, or at once.") % told


def _time_text(at: datetime | None) -> str:
    if at is None:
        return "—"
    local = timezone.localtime(at)
    return f"{local:%Y-%m-%d %H:%M:%S} ({zone_name(local)})"


def _subject(supply: Supply, document: Mapping[str, Any], start: datetime | None) -> str:
    return f"{supply.slug} {document_hash(document)} {start.isoformat() if start else _NOW}"


@require_POST
@requires("price")
@in_reporting_zone
def schedule(request: HttpRequest, slug: str) -> HttpResponse:
    """Exactly the document and the start that were reviewed."""
    supply = _found(slug)
    document, start = _posted(request)
    form = confirmed(request, _SCHEDULE, _subject(supply, document, start))
    actor, now = actor_of(request), timezone.now()

    def store() -> str:
        if start is None:
            publish_price(supply, document, actor=actor, now=now)
        else:
            schedule_price(supply, document, start, actor=actor, now=now)
        messages.info(request, _("Stored. Below is what was read back."))
        return reverse("price", args=[supply.slug])

    try:
        return redirect(answer_once(form.key, actor.name, now, store) or reverse("prices"))
    except PriceClash as clash:
        said, field = _clash(clash), "start"
    except CatalogueError:
        said, field = fault_said("start_at"), "start_at"
    typed = {"start": _AT, "start_at": ""}
    return _form(request, supply, price_form.texts_of(document), typed, [(field, said)], now, status=409)


def _posted(request: HttpRequest) -> tuple[dict[str, Any], datetime | None]:
    """What the review page put into its form; anything else fails its confirmation."""
    try:
        document, start = json.loads(request.POST.get("document", "")), request.POST.get("start", _NOW)
        at = None if start == _NOW else datetime.fromisoformat(start).astimezone(UTC)
    except ValueError:
        return {}, None
    return (document if isinstance(document, dict) else {}), at


@require_safe
@requires("price")
@in_reporting_zone
def cancel(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    supply = _found(slug)
    version = _version(supply, number)
    now = timezone.now()
    context = {
        "as_of": now,
        "supply": supply,
        "version": version,
        "is_planned": queries.state_of(version, now) == "scheduled",
        "former": supply.cost_rule.versions.filter(
            effective_to=version.effective_from, cancelled_at=None
        ).first(),
        "token": confirm_token(request, _CANCEL, version.public_id),
    }
    return render(request, "console/prices/cancel.html", context)


@require_POST
@requires("price")
@in_reporting_zone
def cancel_now(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    supply = _found(slug)
    version = _version(supply, number)
    form = confirmed(request, _CANCEL, version.public_id)
    actor, now = actor_of(request), timezone.now()

    def take_back() -> str:
        done = cancel_price(version, actor=actor, now=now)
        told = {"n": version.number}
        messages.info(
            request,
            _("Version %(n)s is cancelled.") % told
            if done
            else _("Version %(n)s has begun or was cancelled before: nothing was changed.") % told,
        )
        return reverse("price", args=[supply.slug])

    return redirect(answer_once(form.key, actor.name, now, take_back) or reverse("prices"))


def _found(slug: str) -> Supply:
    found = queries.find_supply(slug)
    if found is None:
        raise Http404
    return found


def _version(supply: Supply, number: int) -> CostRuleVersion:
    found = CostRuleVersion.objects.filter(rule__supply=supply, number=number).first()
    if found is None:
        raise Http404
    return found
