"""A customer's credit and keys: a deposit that is confirmed, a key that is shown once, its revocation."""

from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from billing.keys import SCOPES, NewKey
from billing.models import ApiKey, Customer
from billing.money import MoneyError, micros_of
from billing.services.credit_customer import credit_customer
from billing.services.hand_out_key import hand_out_key
from billing.services.revoke_key import revoke_key
from dispatch.services.answer_once import answer_once
from dispatch.templatetags.console import clock_text, money
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.customers import ISSUE, customer_page, found_customer

_DEPOSIT: Final = "deposit credit"
_REVOKE: Final = "revoke api key"
_MOST_MICROS: Final = 1_000_000_000 * 1_000_000  # of one deposit: more is a slip of the hand
NOTE_LENGTH: Final = 300


@require_safe
@requires("price")
def deposit(request: HttpRequest, customer_id: str) -> HttpResponse:
    """What the deposit would do; its button does it."""
    row = found_customer(customer_id)
    note = request.GET.get("note", "").strip()[:NOTE_LENGTH]
    micros = _micros(request.GET.get("amount", ""))
    context: dict[str, Any] = {"customer": row, "note": note, "typed": request.GET.get("amount", "")}
    if micros is None or not note:
        faults = [] if "amount" not in request.GET else _faults(micros, note)
        return render(request, "console/customers/deposit.html", {**context, "faults": faults})
    context |= {
        "micros": micros,
        "after_micros": row.balance_micros + micros,
        "token": confirm_token(request, _DEPOSIT, _subject(row, micros, note)),
    }
    return render(request, "console/customers/deposit.html", context)


@require_POST
@requires("price")
def deposit_now(request: HttpRequest, customer_id: str) -> HttpResponse:
    """Exactly the amount and the note that were confirmed."""
    row = found_customer(customer_id)
    note = request.POST.get("note", "")[:NOTE_LENGTH]
    micros = int(request.POST.get("micros", "")) if request.POST.get("micros", "").isdecimal() else 0
    form = confirmed(request, _DEPOSIT, _subject(row, micros, note))
    actor, now = actor_of(request), timezone.now()

    def add() -> str:
        credit_customer(row, micros, note, actor=actor, now=now)
        said = {"amount": money(micros, row.currency), "time": clock_text(now)}
        messages.info(request, _("%(amount)s were added at %(time)s.") % said)
        return reverse("customer", args=[row.public_id])

    return redirect(answer_once(form.key, actor.name, now, add) or reverse("customers"))


def _subject(row: Customer, micros: int, note: str) -> str:
    return f"{row.public_id} {micros} {note}"


def _micros(text: str) -> int | None:
    """Of an amount as it is typed; None for what is no amount above 0."""
    try:
        micros = micros_of(text.strip().replace(",", ""))
    except (MoneyError, ValueError, ZeroDivisionError):
        return None
    return micros if 0 < micros <= _MOST_MICROS else None


def _faults(micros: int | None, note: str) -> list[tuple[str, str]]:
    found = [("amount", _("An amount is above 0, e.g. 100.00."))] if micros is None else []
    return found if note else [*found, ("note", _("Say what it is for, e.g. the number of an invoice."))]


@require_POST
@requires("administer")
def issue(request: HttpRequest, customer_id: str) -> HttpResponse:
    """The answer shows the key, once: it is stored only as a hash. The same form again shows none."""
    row = found_customer(customer_id)
    form = confirmed(request, ISSUE, row.public_id)
    name = request.POST.get("name", "").strip()[:120]
    scopes = tuple(scope for scope in SCOPES if scope in request.POST.getlist("scope"))
    if not scopes:
        faults = [("scope-read", _("A key needs at least one permission."))]
        return customer_page(request, row, {"faults": faults}, status=422)
    actor, now = actor_of(request), timezone.now()
    made: list[NewKey] = []

    def make() -> str:
        made.append(hand_out_key(row, name, scopes, actor=actor, now=now)[1])
        return reverse("customer", args=[row.public_id])

    went_to = answer_once(form.key, actor.name, now, make) or reverse("customers")
    if made:
        return render(
            request, "console/customers/key.html", {"customer": row, "secret": made[0].secret, "name": name}
        )
    messages.info(request, _("That key was issued already. It is shown once only."))
    return redirect(went_to)


@require_safe
@requires("administer")
def revoke(request: HttpRequest, customer_id: str, key_id: str) -> HttpResponse:
    row = found_customer(customer_id)
    key = _found_key(row, key_id)
    context = {"customer": row, "key": key, "token": confirm_token(request, _REVOKE, key.public_id)}
    return render(request, "console/customers/revoke.html", context)


@require_POST
@requires("administer")
def revoke_now(request: HttpRequest, customer_id: str, key_id: str) -> HttpResponse:
    row = found_customer(customer_id)
    key = _found_key(row, key_id)
    form = confirmed(request, _REVOKE, key.public_id)
    actor, now = actor_of(request), timezone.now()

    def end() -> str:
        revoke_key(key, actor=actor, now=now)
        messages.info(request, _("%(key)s is revoked: its next request is refused.") % {"key": key})
        return reverse("customer", args=[row.public_id])

    return redirect(answer_once(form.key, actor.name, now, end) or reverse("customers"))


def _found_key(row: Customer, key_id: str) -> ApiKey:
    found = row.api_keys.filter(public_id=key_id).first()
    if found is None:
        raise Http404
    return found
