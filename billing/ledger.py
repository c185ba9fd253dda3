"""The two books: the only writers of credit and provider usage entries.

Each function runs inside the caller's transaction and may be repeated: an entry that stands is
not written again, and the balance moves only with its entry."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F

from billing.errors import InsufficientCredit
from billing.models import CostRuleVersion, CreditEntry, Customer, ProviderUsageEntry

Kind = CreditEntry.Kind

_RESERVE = """
WITH covered AS (
    UPDATE billing_customer SET balance_micros = balance_micros - %(micros)s
    WHERE id = %(customer)s AND balance_micros >= %(micros)s RETURNING id)
INSERT INTO billing_creditentry (customer_id, job, kind, amount_micros, currency, note, details, at)
SELECT id, %(job)s, 'reserve', 0 - %(micros)s, %(currency)s, '', '{}', %(at)s FROM covered"""
_POST = """
WITH entry AS (
    INSERT INTO billing_creditentry (customer_id, job, kind, amount_micros, currency, note, details, at)
    VALUES (%(customer)s, %(job)s, %(kind)s, %(micros)s, %(currency)s, %(note)s, %(details)s::jsonb, %(at)s)
    ON CONFLICT (job, kind) WHERE kind IN ('reserve', 'release', 'charge') DO NOTHING RETURNING amount_micros)
UPDATE billing_customer SET balance_micros = balance_micros + entry.amount_micros
FROM entry WHERE billing_customer.id = %(customer)s"""
NOTHING_TO_ADD: Mapping[str, Any] = {}


def deposit(customer: Customer, amount_micros: int, note: str, now: datetime) -> CreditEntry:
    """Adds credit. Raises ValueError for an amount that is not positive."""
    if amount_micros <= 0:
        raise ValueError(f"a deposit is positive; {amount_micros} micros is not")
    Customer.objects.filter(pk=customer.pk).update(balance_micros=F("balance_micros") + amount_micros)
    return CreditEntry.objects.create(
        customer=customer,
        kind=Kind.DEPOSIT,
        amount_micros=amount_micros,
        currency=customer.currency,
        note=note,
        at=now,
    )


def reserve(customer: Customer, job: str, amount_micros: int, now: datetime) -> None:
    """Takes the price of a job out of the balance, or raises InsufficientCredit and takes nothing.

    One conditional UPDATE: of many requests at once, only those that the balance covers get through."""
    if amount_micros == 0:
        return
    entry: dict[str, Any] = {
        "customer": customer.pk,
        "job": job,
        "micros": amount_micros,
        "currency": customer.currency,
        "at": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, entry)
        if not cursor.rowcount:
            raise InsufficientCredit(amount_micros, customer.currency)


def settle_credit(
    customer: Customer,
    job: str,
    reserved_micros: int,
    charge_micros: int,
    note: str,
    now: datetime,
    details: Mapping[str, Any] = NOTHING_TO_ADD,
    attempt: str = "",
) -> None:
    """Gives the reserve back and takes the charge, once for each job however often it is called.
    `details` are what the charge says of a degraded result; both name the `attempt` that ended the job."""
    if reserved_micros == 0 and charge_micros == 0:
        return
    ended_by = {"attempt": attempt} if attempt else {}
    _post_once(customer, job, Kind.RELEASE, reserved_micros, note, now, ended_by)
    _post_once(customer, job, Kind.CHARGE, -charge_micros, note, now, {**details, **ended_by})


def release_many(reserved: Sequence[tuple[int, str, int]], note: str, now: datetime) -> None:
    """Gives the reserves of jobs back that end before anything was delivered, and were never settled.

    `reserved`: customer's id, job, micros. By two statements; the customers are locked in the order of their
    ids. The caller makes sure that it happens once, by moving the jobs in the same transaction."""
    owed: Counter[int] = Counter()
    for customer, _, micros in reserved:
        owed[customer] += micros
    customers = {
        row.pk: row
        for row in Customer.objects.select_for_update(no_key=True).filter(pk__in=owed).order_by("pk")
    }
    CreditEntry.objects.bulk_create(
        CreditEntry(
            customer=customers[customer],
            job=job,
            kind=Kind.RELEASE,
            amount_micros=micros,
            currency=customers[customer].currency,
            note=note,
            at=now,
        )
        for customer, job, micros in reserved
        if micros
    )
    for row in customers.values():
        row.balance_micros += owed[row.pk]
    Customer.objects.bulk_update(customers.values(), ["balance_micros"])


def _post_once(
    customer: Customer,
    job: str,
    kind: CreditEntry.Kind,
    amount_micros: int,
    note: str,
    now: datetime,
    details: Mapping[str, Any],
) -> None:
    """One statement: the balance moves if the entry is new."""
    if amount_micros == 0:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _POST,
            {
                "customer": customer.pk,
                "job": job,
                "kind": kind,
                "micros": amount_micros,
                "currency": customer.currency,
                "note": note,
                "details": json.dumps(dict(details)),
                "at": now,
            },
        )


def expect_cost(
    attempt: str,
    supply_id: int,
    version: CostRuleVersion,
    amount_micros: int,
    currency: str,
    now: datetime,
    details: Mapping[str, Any] = NOTHING_TO_ADD,
) -> None:
    """At acceptance: what the provider will charge by the quote."""
    expected = ProviderUsageEntry(
        attempt=attempt,
        supply_id=supply_id,
        kind=ProviderUsageEntry.Kind.EXPECTED,
        amount_micros=amount_micros,
        currency=currency,
        cost_rule_version=version,
        details=dict(details),
        at=now,
    )
    ProviderUsageEntry.objects.bulk_create([expected], ignore_conflicts=True)


def settle_cost(
    attempt: str,
    supply_id: int,
    version: CostRuleVersion,
    amount_micros: int,
    currency: str,
    now: datetime,
    platform_loss: bool = False,
    details: Mapping[str, Any] = NOTHING_TO_ADD,
) -> None:
    """At the end: the expectation is reversed and the true cost stands, so that the sum is the cost."""
    settled = ProviderUsageEntry(
        attempt=attempt,
        supply_id=supply_id,
        kind=ProviderUsageEntry.Kind.SETTLED,
        amount_micros=amount_micros,
        currency=currency,
        cost_rule_version=version,
        platform_loss=platform_loss,
        details=dict(details),
        at=now,
    )
    expected = ProviderUsageEntry.objects.filter(attempt=attempt, kind=ProviderUsageEntry.Kind.EXPECTED)
    reversals = [_reversal(entry, version, now) for entry in expected]
    ProviderUsageEntry.objects.bulk_create([*reversals, settled], ignore_conflicts=True)


def _reversal(expected: ProviderUsageEntry, version: CostRuleVersion, now: datetime) -> ProviderUsageEntry:
    return ProviderUsageEntry(
        attempt=expected.attempt,
        supply_id=expected.supply_id,
        kind=ProviderUsageEntry.Kind.REVERSAL,
        amount_micros=-expected.amount_micros,
        currency=expected.currency,
        cost_rule_version=version,
        at=now,
    )


def correct_cost(
    attempt: str,
    supply_id: int,
    version: CostRuleVersion,
    change_micros: int,
    currency: str,
    now: datetime,
    platform_loss: bool = False,
    details: Mapping[str, Any] = NOTHING_TO_ADD,
) -> None:
    """A settled cost that was not the true one: the difference, as an entry of its own. Not idempotent, since
    a cost may be corrected again: the caller does it once for each finding."""
    ProviderUsageEntry.objects.create(
        attempt=attempt,
        supply_id=supply_id,
        kind=ProviderUsageEntry.Kind.CORRECTION,
        amount_micros=change_micros,
        currency=currency,
        cost_rule_version=version,
        platform_loss=platform_loss,
        details=dict(details),
        at=now,
    )
