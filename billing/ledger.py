"""The two books: the only writers of credit and provider usage entries.

Each function runs inside the caller's transaction and may be repeated: an entry that stands is
not written again, and the balance moves only with its entry."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F

from billing.errors import InsufficientCredit
from billing.models import CreditEntry, Customer, ProviderUsageEntry
from catalog.rows import all_rows, insert_unknown
from catalog.statements import prepared

Kind = CreditEntry.Kind

_RESERVE = """
WITH covered AS (
    UPDATE billing_customer SET balance_micros = balance_micros - %(micros)s::bigint
    WHERE id = %(customer)s AND balance_micros >= %(micros)s RETURNING id)
INSERT INTO billing_creditentry (customer_id, job, kind, amount_micros, currency, note, details, at)
SELECT id, %(job)s, 'reserve', 0 - %(micros)s::bigint, %(currency)s, '', '{}', %(at)s FROM covered"""
# The balances move by the entries that are new, and are locked in the order of the customers' ids.
_POST = """
WITH entry AS (
    INSERT INTO billing_creditentry (customer_id, job, kind, amount_micros, currency, note, details, at)
    SELECT customer, job, kind, micros, currency, note, details, %(at)s
    FROM unnest(%(customers)b::bigint[], %(jobs)b::text[], %(kinds)b::text[], %(micros)b::bigint[],
                %(currencies)b::text[], %(notes)b::text[], %(details)b::jsonb[])
        AS posted(customer, job, kind, micros, currency, note, details)
    ON CONFLICT (job, kind) WHERE kind IN ('reserve', 'release', 'charge') DO NOTHING
    RETURNING customer_id, amount_micros),
moved AS (SELECT customer_id, sum(amount_micros) AS micros FROM entry GROUP BY 1),
locked AS (
    SELECT customer.id, moved.micros FROM billing_customer AS customer
    JOIN moved ON moved.customer_id = customer.id ORDER BY customer.id FOR NO KEY UPDATE OF customer)
UPDATE billing_customer AS customer SET balance_micros = customer.balance_micros + locked.micros
FROM locked WHERE customer.id = locked.id"""
_EXPECTED = """
FROM billing_providerusageentry AS entry WHERE entry.attempt = ANY(%b::text[]) AND entry.kind = 'expected'
ORDER BY entry.id"""


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
    with prepared() as cursor:
        cursor.execute(_RESERVE, entry)
        if not cursor.rowcount:
            raise InsufficientCredit(amount_micros, customer.currency)


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of a job, to its customer. `details`: what the charge says of a degraded result; both entries
    name the `attempt` that ended the job."""

    customer_id: int
    currency: str
    job: str
    reserved_micros: int
    charge_micros: int
    note: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    attempt: str = ""

    def entries(self) -> list[CreditEntry]:
        """None of nothing."""
        ended_by = {"attempt": self.attempt} if self.attempt else {}
        both = [
            self._entry(Kind.RELEASE, self.reserved_micros, ended_by),
            self._entry(Kind.CHARGE, -self.charge_micros, {**self.details, **ended_by}),
        ]
        return [entry for entry in both if entry.amount_micros]

    def _entry(self, kind: CreditEntry.Kind, micros: int, details: dict[str, Any]) -> CreditEntry:
        return CreditEntry(
            customer_id=self.customer_id,
            job=self.job,
            kind=kind,
            amount_micros=micros,
            currency=self.currency,
            note=self.note,
            details=details,
        )


def settle_credit(settlements: Iterable[Settlement], now: datetime) -> None:
    """Gives reserves back and takes charges, once for each job however often it is called."""
    post([entry for settlement in settlements for entry in settlement.entries()], now)


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


def post(entries: Sequence[CreditEntry], now: datetime) -> None:
    """One statement: each balance moves by the entries that are new."""
    if not entries:
        return
    with prepared() as cursor:
        cursor.execute(
            _POST,
            {
                "customers": [entry.customer_id for entry in entries],
                "jobs": [entry.job for entry in entries],
                "kinds": [str(entry.kind) for entry in entries],
                "micros": [entry.amount_micros for entry in entries],
                "currencies": [entry.currency for entry in entries],
                "notes": [entry.note for entry in entries],
                "details": [json.dumps(entry.details) for entry in entries],
                "at": now,
            },
        )


@dataclass(frozen=True, slots=True)
class ProviderCost:
    """What an attempt costs at its provider: by the quote, as it ended, or by how much that was mistaken."""

    attempt: str
    supply_id: int
    cost_rule_version_id: int
    amount_micros: int
    currency: str
    platform_loss: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    def entry(self, kind: ProviderUsageEntry.Kind, now: datetime) -> ProviderUsageEntry:
        return ProviderUsageEntry(
            attempt=self.attempt,
            supply_id=self.supply_id,
            kind=kind,
            amount_micros=self.amount_micros,
            currency=self.currency,
            cost_rule_version_id=self.cost_rule_version_id,
            platform_loss=self.platform_loss,
            details=dict(self.details),
            at=now,
        )


def expect_costs(costs: Iterable[ProviderCost], now: datetime) -> None:
    """At acceptance: what providers will charge by the quotes."""
    expected = [cost.entry(ProviderUsageEntry.Kind.EXPECTED, now) for cost in costs]
    insert_unknown(expected)


def settle_costs(costs: Iterable[ProviderCost], now: datetime) -> None:
    """At the end: each expectation is reversed and the true cost stands, so that the sum is the cost."""
    settled = {cost.attempt: cost.entry(ProviderUsageEntry.Kind.SETTLED, now) for cost in costs}
    if not settled:
        return
    expected = all_rows(_EXPECTED, [list(settled)], entry=ProviderUsageEntry)
    reversals = [_reversal(entry, settled[entry.attempt], now) for (entry,) in expected]
    insert_unknown([*reversals, *settled.values()])


def _reversal(expected: ProviderUsageEntry, settled: ProviderUsageEntry, now: datetime) -> ProviderUsageEntry:
    return ProviderUsageEntry(
        attempt=expected.attempt,
        supply_id=expected.supply_id,
        kind=ProviderUsageEntry.Kind.REVERSAL,
        amount_micros=-expected.amount_micros,
        currency=expected.currency,
        cost_rule_version_id=settled.cost_rule_version_id,
        at=now,
    )


def correct_cost(change: ProviderCost, now: datetime) -> None:
    """A settled cost that was not the true one: the difference, as an entry of its own. Not idempotent, since
    a cost may be corrected again: the caller does it once for each finding."""
    change.entry(ProviderUsageEntry.Kind.CORRECTION, now).save(force_insert=True)
