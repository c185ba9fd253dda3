"""Customers: made, credited, limited, given keys; each by who may, once, and with an audit entry."""

import re

import pytest
from django.test import Client

from billing.keys import hash_of
from billing.models import ApiKey, CreditEntry, Customer
from catalog.models import AuditEntry
from tests.console import SignIn
from tests.factories import CustomerFactory, CustomerGroupFactory

LIST = "/console/customers/"


@pytest.fixture
def root(sign_in: SignIn) -> Client:
    return sign_in("admin", username="root")


@pytest.fixture
def acme(db: None) -> Customer:
    return CustomerFactory(name="Acme", balance_micros=0)


def page_of(customer: Customer) -> str:
    return f"{LIST}{customer.public_id}/"


def test_a_customer_is_made_once_and_a_taken_name_is_refused_with_what_was_typed(
    root: Client, acme: Customer
) -> None:
    token = root.get(f"{LIST}new/").context["token"]
    form = {"confirm": token, "name": "Acme", "group": "", "currency": "USD"}
    refused = root.post(f"{LIST}new/create/", form)
    assert refused.status_code == 422
    assert refused.content.decode().count('aria-invalid="true"') == 1
    form["name"] = "Northlight"
    for _twice in range(2):
        made = root.post(f"{LIST}new/create/", form)
        assert made["Location"] == page_of(Customer.objects.get(name="Northlight"))
    assert AuditEntry.objects.filter(action="create customer").count() == 1
    assert root.post(f"{LIST}new/create/", {**form, "confirm": ""}).status_code == 403


def test_a_deposit_adds_exactly_what_was_confirmed_and_once(sign_in: SignIn, acme: Customer) -> None:
    zhao = sign_in("finance", username="zhao.q")
    wrong = zhao.get(f"{page_of(acme)}deposit/?amount=1.0000001&note=")
    assert [field for field, _text in wrong.context["faults"]] == ["amount", "note"]
    review = zhao.get(f"{page_of(acme)}deposit/?amount=1,250.50&note=invoice+7")
    assert "the balance goes from $0.00 to $1,250.50" in review.content.decode()
    form = {"confirm": review.context["token"], "micros": "1250500000", "note": "invoice 7"}
    more = zhao.post(f"{page_of(acme)}deposit/now/", {**form, "micros": "9950500000"})
    assert more.status_code == 403
    for _twice in range(2):
        zhao.post(f"{page_of(acme)}deposit/now/", form)
    acme.refresh_from_db()
    assert acme.balance_micros == 1_250_500_000
    assert CreditEntry.objects.get().note == "invoice 7"
    assert AuditEntry.objects.get(action="deposit credit").actor == "zhao.q"


def test_a_key_is_shown_once_works_and_is_revoked_on_a_page_of_its_own(root: Client, acme: Customer) -> None:
    form = {"confirm": root.get(page_of(acme)).context["key_token"], "name": "farm", "scope": ["read"]}
    nothing = root.post(f"{page_of(acme)}keys/", {**form, "scope": []})
    assert nothing.status_code == 422
    shown = root.post(f"{page_of(acme)}keys/", form)
    assert shown["Cache-Control"] == "no-store"
    found = re.search(r"fy_live_[0-9a-z]{38}", shown.content.decode())
    assert found is not None
    key = ApiKey.objects.get()
    assert (key.hash, key.scopes, key.name) == (hash_of(found[0]), ["read"], "farm")
    again = root.post(f"{page_of(acme)}keys/", form)
    assert again["Location"] == page_of(acme)
    assert ApiKey.objects.count() == 1
    assert found[0] not in root.get(page_of(acme)).content.decode()
    assert found[0] not in str(list(AuditEntry.objects.values_list("after")))
    revoke = f"{page_of(acme)}keys/{key.public_id}/revoke/"
    token = root.get(revoke).context["token"]
    assert root.post(f"{revoke}now/").status_code == 403
    assert root.post(f"{revoke}now/", {"confirm": token}).status_code == 302
    key.refresh_from_db()
    assert key.revoked_at is not None
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["issue api key", "revoke api key"]


def test_limits_are_refused_by_field_and_never_overwrite_those_of_somebody_else(
    sign_in: SignIn, acme: Customer
) -> None:
    CustomerGroupFactory(slug="studio")
    li, wang = sign_in("operator"), sign_in("operator", username="wang.l")
    address = f"{page_of(acme)}limits/"
    mine, theirs = (client.get(page_of(acme)).context["limit_token"] for client in (li, wang))
    form = {"max_in_flight": "2,000", "max_queued": "5000", "weight": "3", "group": "studio", "active": "1"}
    wrong = li.post(address, {**form, "confirm": mine, "weight": "0", "priorities": "launch=9"})
    assert wrong.status_code == 422
    assert "launch=9" in wrong.content.decode()
    assert 'aria-invalid="true"' in wrong.content.decode()
    assert wang.post(address, {**form, "confirm": theirs, "priorities": "launch=2"}).status_code == 302
    clash = li.post(address, {**form, "confirm": mine, "max_in_flight": "7"})
    assert clash.status_code == 409
    assert "Somebody changed them while you typed" in clash.content.decode()
    assert 'value="7"' in clash.content.decode()
    acme.refresh_from_db()
    assert (acme.max_in_flight, acme.weight, acme.project_priorities) == (2_000, 3, {"launch": 2})
    entry = AuditEntry.objects.get(action="limit customer")
    assert entry.actor == "wang.l"
    assert entry.before["max_in_flight"] == 1_000


def test_g6_the_list_is_filtered_by_its_address_and_says_why_it_is_empty(
    sign_in: SignIn, acme: Customer
) -> None:
    CustomerFactory(name="Borealis", active=False)
    viewer = sign_in("viewer")
    assert [row.name for row in viewer.get(LIST).context["cut"].rows] == ["Acme"]
    inactive = viewer.get(f"{LIST}?inactive=1&name=bor")
    assert [row.name for row in inactive.context["cut"].rows] == ["Borealis"]
    assert "No customer matches these 2 filters" in viewer.get(f"{LIST}?name=x&group=y").content.decode()
    assert "New customer" not in viewer.get(LIST).content.decode()
    assert "Keys are issued and revoked by: admin" in viewer.get(page_of(acme)).content.decode()
