"""The two books, line by line and summed up: what customers owe, what providers charge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import QueryDict

from billing.models import CreditEntry, Customer, ProviderUsageEntry
from catalog.models import Supply
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
    return rows.filter(job=wanted.job) if wanted.job else rows


def _of_providers(wanted: BookFilter) -> QuerySet[ProviderUsageEntry]:
    rows = ProviderUsageEntry.objects.select_related("supply", "cost_rule_version")
    if wanted.supply:
        rows = rows.filter(supply__slug=wanted.supply)
    if wanted.attempt:
        rows = rows.filter(attempt=wanted.attempt)
    of_jobs = _attempts_of(wanted)
    return rows if of_jobs is None else rows.filter(attempt__in=of_jobs.values("public_id"))


def _attempts_of(wanted: BookFilter) -> QuerySet[Attempt] | None:
    if not (wanted.job or wanted.customer):
        return None
    attempts = Attempt.objects.all()
    if wanted.job:
        attempts = attempts.filter(job__public_id=wanted.job)
    return attempts.filter(job__customer__in=_customers(wanted)) if wanted.customer else attempts


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


@dataclass(frozen=True, slots=True)
class Total:
    name: str  # a kind, or a day
    currency: str
    micros: int
    lines: int


@dataclass(frozen=True, slots=True)
class SupplyTotal:
    """What a supply's attempts that ended in these days came to. `wasted_micros`: of those that delivered
    nothing."""

    supply: str
    currency: str
    delivered: int
    ended: int
    degraded: int
    spent_micros: int
    wasted_micros: int

    @property
    def per_success_micros(self) -> int | None:
        return self.spent_micros // self.delivered if self.delivered else None

    @property
    def success(self) -> float:
        return self.delivered / self.ended


@dataclass(frozen=True)
class Totals:
    """`sums` by currency equal the sums of the lines; by kind and by day they add up to these."""

    sums: Sequence[Total]
    by_kind: Sequence[Total]
    by_day: Sequence[Total]
    loss: Sequence[Total]  # ours to bear, of the book of providers
    supplies: Sequence[SupplyTotal]


def totals(wanted: BookFilter, days: Days) -> Totals:
    """Four queries, three for the book of customers."""
    rows = lines(wanted, days).select_related(None).order_by()
    by_kind = _summed(rows, "kind")
    sums: dict[str, tuple[int, int]] = {}
    for each in by_kind:
        micros, count = sums.get(each.currency, (0, 0))
        sums[each.currency] = (micros + each.micros, count + each.lines)
    of_days = rows.annotate(day=TruncDate("at", tzinfo=days.zone))
    is_ours = wanted.book == PROVIDERS
    return Totals(
        sums=[Total("", currency, *told) for currency, told in sorted(sums.items())],
        by_kind=by_kind,
        by_day=_summed(of_days, "day"),
        loss=_summed(rows.filter(platform_loss=True), "platform_loss") if is_ours else (),
        supplies=supply_totals(days, wanted.supply) if is_ours else (),
    )


def _summed(rows: QuerySet[Any], name: str) -> list[Total]:
    told = rows.values(name, "currency").annotate(micros=Sum("amount_micros"), lines=Count("pk"))
    return [
        Total(_text(row[name]), row["currency"], row["micros"], row["lines"])
        for row in told.order_by(name, "currency")
    ]


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def supply_totals(days: Days, supply: str = "") -> list[SupplyTotal]:
    """The most expensive first."""
    ended = Attempt.objects.filter(finished_at__gte=days.start, finished_at__lt=days.end)
    # By their ids, so that the index of a supply's attempts is entered.
    supplies = Supply.objects.filter(slug=supply) if supply else Supply.objects.all()
    ended = ended.filter(supply__in=list(supplies.values_list("pk", flat=True)))
    delivered = Q(state="succeeded")
    told = ended.values("supply__slug", "quote_currency").annotate(
        ended=Count("pk"),
        delivered=Count("pk", filter=delivered),
        degraded=Count("pk", filter=delivered & Q(tier="degraded")),
        spent=Sum("cost_micros", default=0),
        wasted=Sum("cost_micros", default=0, filter=~delivered),
    )
    return [
        SupplyTotal(
            row["supply__slug"],
            row["quote_currency"],
            row["delivered"],
            row["ended"],
            row["degraded"],
            row["spent"],
            row["wasted"],
        )
        for row in told.order_by("-spent", "supply__slug")
    ]
