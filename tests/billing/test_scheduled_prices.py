"""Prices that begin later: planned, refused where they clash, and taken back."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from billing.models import CostRuleVersion
from billing.repository import price_in_force
from billing.services.cancel_price import cancel_price
from billing.services.publish_price import publish_price
from billing.services.schedule_price import PriceClash, schedule_price
from catalog.audit import Actor
from catalog.document import DocumentError
from catalog.exceptions import CatalogueError
from catalog.models import AuditEntry, Supply
from catalog.revision import current_revision
from tests.factories import NOW, SupplyFactory

FINANCE = Actor("zhao.q", "console")
MONDAY = NOW + timedelta(days=6)


def price(amount: str = "0.05") -> dict[str, Any]:
    return {"mode": "per_second", "currency": "USD", "per_second": amount}


def plan(supply: Supply, start: datetime = MONDAY, amount: str = "0.05") -> CostRuleVersion:
    return schedule_price(supply, price(amount), start, actor=FINANCE, now=NOW)


@pytest.fixture
def supply(db: None) -> Supply:
    return SupplyFactory(price=price("0.04"))


def amount_at(supply: Supply, at: datetime) -> str:
    version = price_in_force(supply, at)
    assert version is not None
    return str(version.document["per_second"])


def test_m3_the_price_in_force_stays_until_the_instant_and_then_the_planned_one_is(supply: Supply) -> None:
    before = current_revision()
    version = plan(supply)
    assert version.number == 2
    assert amount_at(supply, MONDAY - timedelta(microseconds=1)) == "0.04"
    assert amount_at(supply, MONDAY) == "0.05"
    assert current_revision() == before + 1
    entry = AuditEntry.objects.get(action="schedule price")
    assert (entry.actor, entry.after["version"]) == ("zhao.q", 2)


def test_m4_an_overlap_is_refused_and_names_the_other_version(supply: Supply) -> None:
    planned = plan(supply)
    for start in (MONDAY, MONDAY - timedelta(days=1)):
        with pytest.raises(PriceClash) as refused:
            plan(supply, start)
        assert (refused.value.kind, refused.value.other) == ("overlap", planned)
    assert plan(supply, MONDAY + timedelta(days=7)).number == 3


def test_m4_a_gap_is_refused_and_names_the_version_that_ends(supply: Supply) -> None:
    publish_price(supply, None, actor=FINANCE, now=NOW)
    with pytest.raises(PriceClash) as refused:
        plan(supply)
    assert (refused.value.kind, refused.value.other.number) == ("gap", 1)
    assert supply.cost_rule.versions.count() == 1


def test_a_planned_price_is_cancelled_before_it_begins_and_the_former_goes_on(supply: Supply) -> None:
    version = plan(supply)
    assert cancel_price(version, actor=FINANCE, now=MONDAY - timedelta(seconds=1))
    assert amount_at(supply, MONDAY) == "0.04"
    assert not cancel_price(version, actor=FINANCE, now=NOW)
    again = plan(supply, amount="0.06")
    assert (again.number, amount_at(supply, MONDAY)) == (3, "0.06")
    assert not cancel_price(again, actor=FINANCE, now=MONDAY)
    assert AuditEntry.objects.filter(action="cancel price").count() == 1


def test_a_price_at_once_applies_until_the_planned_one(supply: Supply) -> None:
    plan(supply)
    now = NOW + timedelta(hours=1)
    publish_price(supply, price("0.03"), actor=FINANCE, now=now)
    assert [amount_at(supply, at) for at in (NOW, now, MONDAY)] == ["0.04", "0.03", "0.05"]


def test_a_price_that_begins_now_or_cannot_be_executed_is_not_planned(supply: Supply) -> None:
    with pytest.raises(CatalogueError):
        plan(supply, NOW)
    with pytest.raises(DocumentError, match="per_token"):
        schedule_price(supply, {"mode": "per_token", "currency": "USD"}, MONDAY, actor=FINANCE, now=NOW)


def test_the_database_lets_nobody_edit_or_delete_a_price(supply: Supply) -> None:
    version = plan(supply)
    with pytest.raises(DatabaseError), transaction.atomic():
        CostRuleVersion.objects.filter(pk=version.pk).update(document={})
    with pytest.raises(DatabaseError), transaction.atomic():
        version.delete()
