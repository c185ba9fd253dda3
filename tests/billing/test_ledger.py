"""The two books."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.db.models import Sum
from django.db.utils import DatabaseError

from billing import ledger
from billing.errors import InsufficientCredit
from billing.models import CreditEntry, Customer
from billing.services.create_customer import create_customer
from tests.factories import NOW


def balance_and_sum(customer: Customer) -> tuple[int, int]:
    customer.refresh_from_db()
    total = CreditEntry.objects.filter(customer=customer).aggregate(total=Sum("amount_micros"))["total"] or 0
    return customer.balance_micros, total


@pytest.mark.django_db
def test_a_reserve_is_given_back_once_and_the_charge_taken_once_however_often_it_is_settled() -> None:
    customer = create_customer("acme", NOW, deposit_micros=10_000_000)
    ledger.reserve(customer, "job_1", 6_000_000, NOW)
    for _ in range(3):
        ended = ledger.Settlement(customer.pk, customer.currency, "job_1", 6_000_000, 2_500_000)
        ledger.settle_credit([ended], NOW)
    assert balance_and_sum(customer) == (7_500_000, 7_500_000)
    kinds = CreditEntry.objects.filter(job="job_1").order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["reserve", "release", "charge"]


@pytest.mark.django_db
def test_a_price_above_the_balance_reserves_nothing() -> None:
    customer = create_customer("acme", NOW, deposit_micros=1_000_000)
    with pytest.raises(InsufficientCredit, match=r"2\.00 USD"):
        ledger.reserve(customer, "job_1", 2_000_000, NOW)
    assert balance_and_sum(customer) == (1_000_000, 1_000_000)


@pytest.mark.django_db(transaction=True)
def test_of_twenty_reserves_at_once_only_those_that_the_balance_covers_get_through() -> None:
    customer = create_customer("acme", NOW, deposit_micros=3_000_000)

    def reserve(number: int) -> bool:
        try:
            with transaction.atomic():
                ledger.reserve(customer, f"job_{number}", 1_000_000, NOW)
        except InsufficientCredit:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(reserve, range(20)))
    assert outcomes.count(True) == 3
    assert balance_and_sum(customer) == (0, 0)


@pytest.mark.django_db
@pytest.mark.parametrize("statement", ["UPDATE {} SET note = 'x'", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_database_refuses_to_change_an_entry(statement: str) -> None:
    create_customer("acme", NOW, deposit_micros=1_000_000)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # else TRUNCATE is refused for another reason
    with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(statement.format("billing_creditentry"))
