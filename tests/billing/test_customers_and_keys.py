"""The doors for customers, credit and keys, from the command line."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from billing.models import ApiKey, Customer
from catalog.models import AuditEntry

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    output = StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue()


def test_a_customer_is_made_once_and_deposits_add_up() -> None:
    run("customer", "acme", "--group", "studio", "--deposit", "100.00", "--note", "invoice 7")
    assert "balance 150.50 USD" in run("customer", "acme", "--deposit", "50.50")
    assert Customer.objects.get().group.slug == "studio"
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["create customer", "deposit credit", "deposit credit"]


@pytest.mark.parametrize("currency", ["usd", "US1", "EURO", "ÜSD"])
def test_a_currency_that_is_none_makes_nothing(currency: str) -> None:
    with pytest.raises(CommandError, match="currency"):
        run("customer", "acme", "--currency", currency)
    assert not Customer.objects.exists()


@pytest.mark.parametrize("amount", ["0", "-1", "1.0000001", "much"])
def test_an_amount_that_is_no_deposit_makes_nothing(amount: str) -> None:
    with pytest.raises(CommandError, match="deposit"):
        run("customer", "acme", f"--deposit={amount}")
    assert not Customer.objects.exists()


def test_a_key_is_shown_once_listed_without_its_secret_and_revoked() -> None:
    run("customer", "acme")
    secret = run("api_key", "issue", "acme", "--scope", "read").strip().rpartition(" ")[2]
    key = ApiKey.objects.get()
    assert key.scopes == ["read"]
    listed = run("api_key", "list", "acme")
    assert key.public_id in listed
    assert secret not in listed
    assert secret not in str(list(AuditEntry.objects.values()))
    run("api_key", "revoke", key.public_id)
    run("api_key", "revoke", key.public_id)
    assert "revoked" in run("api_key", "list", "acme")
    entries = AuditEntry.objects.filter(subject=f"api_key:{key.public_id}").order_by("id")
    assert [entry.action for entry in entries] == ["issue api key", "revoke api key"]


def test_a_customer_or_key_that_does_not_exist_is_named() -> None:
    with pytest.raises(CommandError, match="no customer 'nobody'"):
        run("api_key", "issue", "nobody")
    with pytest.raises(CommandError, match="no key key_x"):
        run("api_key", "revoke", "key_x")


def test_projects_of_a_customer_get_priorities_which_are_audited_and_can_be_taken_back() -> None:
    run("customer", "acme", "--priority", "launch=5", "--priority", "chore=-2")
    run("customer", "acme", "--priority", "launch=0")
    assert Customer.objects.get().project_priorities == {"chore": -2}
    entry = AuditEntry.objects.filter(action="set priorities").latest("id")
    assert (entry.before, entry.after) == ({"launch": 5, "chore": -2}, {"chore": -2})


@pytest.mark.parametrize("wish", ["launch=6", "launch=high", "=1", "launch"])
def test_a_priority_that_is_none_changes_nothing(wish: str) -> None:
    with pytest.raises(CommandError, match="priority"):
        run("customer", "acme", f"--priority={wish}")
    assert not Customer.objects.exists()
