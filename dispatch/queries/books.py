"""The two books, line by line and summed up: what customers owe, what providers charge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet
from django.http import QueryDict

from billing.models import CreditEntry, Customer, ProviderUsageEntry
from dispatch.models import Attempt
from dispatch.queries.days import Days

CUSTOMERS: Final = "customers"
PROVIDERS: Final = "providers"
_CHUNK: Final = 2_000

type Line = CreditEntry | ProviderUsageEntry


@dataclass(frozen=True, slots=True)
class BookFilter:
    """`customer` and `job` are public ids, `attempt` too; `supply` is a slug. A job's lines in the book of
    providers are those of its attempts."""

    book: str = CUSTOMERS
    customer: str = ""
    job: str = ""
    attempt: str = ""
    supply: str = ""
    kind: str = ""


def parse_filter(query: QueryDict) -> BookFilter:
    book = PROVIDERS if query.get("book") == PROVIDERS else CUSTOMERS
    kinds = (CreditEntry if book == CUSTOMERS else ProviderUsageEntry).Kind.values
    kind = query.get("kind", "")
    told = {name: query.get(name, "").strip()[:80] for name in ("customer", "job", "attempt", "supply")}
    if book == CUSTOMERS:
        told |= {"attempt": "", "supply": ""}
    return BookFilter(book, **told, kind=kind if kind in kinds else "")


def lines(wanted: BookFilter, days: Days) -> QuerySet[Any]:
    """Of one book, in these days; unordered."""
    rows = _of_customers(wanted) if wanted.book == CUSTOMERS else _of_providers(wanted)
    if wanted.kind:
        rows = rows.filter(kind=wanted.kind)
    return rows.filter(at__gte=days.start, at__lt=days.end)


def _of_customers(wanted: BookFilter) -> QuerySet[CreditEntry]:
    rows = CreditEntry.objects.select_related("customer")
    if wanted.customer:
        rows = rows.filter(customer__in=_customers(wanted))
    return rows.of_job(wanted.job) if wanted.job else rows


def _of_providers(wanted: BookFilter) -> QuerySet[ProviderUsageEntry]:
    rows = ProviderUsageEntry.objects.select_related("supply", "cost_rule_version")
    if wanted.supply:
        rows = rows.filter(supply__slug=wanted.supply)
    if wanted.attempt:
        rows = rows.of_attempts([wanted.attempt])
    if wanted.job:  # of few attempts: by their ids, or the lines of all days are read for them
        rows = rows.of_attempts(list(_attempts_of(wanted)))
    elif wanted.customer:
        rows = rows.filter(attempt__in=_attempts_of(wanted))
    return rows


def _attempts_of(wanted: BookFilter) -> QuerySet[Attempt, str]:
    """Public ids."""
    attempts = Attempt.objects.filter(job__public_id=wanted.job) if wanted.job else Attempt.objects.all()
    if wanted.customer:
        attempts = attempts.filter(job__customer__in=_customers(wanted))
    return attempts.values_list("public_id", flat=True)


def _customers(wanted: BookFilter) -> list[int]:
    """Row ids: so the planner knows how many lines they have."""
    return list(Customer.objects.filter(public_id=wanted.customer).values_list("pk", flat=True))


def jobs_of(rows: Sequence[Line]) -> Mapping[str, str]:
    """By attempt: the job that it belongs to."""
    attempts = [row.attempt for row in rows if isinstance(row, ProviderUsageEntry)]
    found = Attempt.objects.filter(public_id__in=attempts)
    return dict(found.values_list("public_id", "job__public_id")) if attempts else {}


def every_line(wanted: BookFilter, days: Days) -> Iterator[Line]:
    """Oldest first, read in pieces."""
    yield from lines(wanted, days).order_by("at", "id").iterator(chunk_size=_CHUNK)
