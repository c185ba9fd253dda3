"""What the two books come to: sums by kind and day, and what each supply delivered for its cost.

Whole hours come from the sums that are kept of them (`billing.services.sum_books`, `count_hours`), and only
what is newer from the lines and attempts themselves."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Any, Final

from django.db.models import Aggregate, Count, F, Max, Min, Q, QuerySet, Sum, Value
from django.db.models.functions import TruncDate

from billing.models import HourOfBook, SummedTo
from catalog.models import Supply
from dispatch.hours import HOUR, hour_of
from dispatch.models import Attempt, HourOfWork
from dispatch.queries.books import PROVIDERS, BookFilter, lines
from dispatch.queries.days import Days

type _Key = tuple[date, str, str, bool]  # day, kind, currency, whether it is our loss
type _Sums = dict[_Key, tuple[int, int]]  # micros and lines


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
    """Three queries, and three more for the book of providers."""
    sums = _sums(wanted, days)
    is_ours = wanted.book == PROVIDERS
    return Totals(
        sums=_totals(sums, lambda key: ("", key[2])),
        by_kind=_totals(sums, lambda key: (key[1], key[2])),
        by_day=_totals(sums, lambda key: (key[0].isoformat(), key[2])),
        loss=_totals({key: each for key, each in sums.items() if key[3]}, lambda key: ("", key[2])),
        supplies=supply_totals(days, wanted.supply) if is_ours else (),
    )


def _totals(sums: _Sums, of: Callable[[_Key], tuple[str, str]]) -> list[Total]:
    micros, count = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for key, (amount, number) in sums.items():
        micros[of(key)] += amount
        count[of(key)] += number
    return [Total(*each, micros[each], count[each]) for each in sorted(count)]


def _sums(wanted: BookFilter, days: Days) -> _Sums:
    """Read again where meanwhile more was summed up: each line counts once."""
    if wanted.job or wanted.attempt or wanted.customer or not _whole_hours(days):
        return _of_lines(wanted, lines(wanted, days), days.zone)
    while True:
        line = _summed_to(wanted.book)
        kept = _of_hours(wanted, days)
        newer = _of_lines(wanted, lines(wanted, days).filter(pk__gt=line), days.zone)
        if line == _summed_to(wanted.book):
            return _together(kept, newer)


def _whole_hours(days: Days) -> bool:
    """There are zones whose midnight lies inside an hour."""
    return all(at == hour_of(at) for at in (days.start, days.end))


def _summed_to(book: str) -> int:
    return SummedTo.objects.filter(book=book).values_list("line", flat=True).first() or 0


def _of_hours(wanted: BookFilter, days: Days) -> _Sums:
    hours = HourOfBook.objects.filter(book=wanted.book, hour__gte=days.start, hour__lt=days.end)
    if wanted.kind:
        hours = hours.filter(kind=wanted.kind)
    if wanted.supply:
        hours = hours.filter(supply__slug=wanted.supply)
    told = hours.order_by().annotate(day=TruncDate("hour", tzinfo=days.zone), loss=F("platform_loss"))
    return _read(told, "micros", Sum("lines"))


def _of_lines(wanted: BookFilter, rows: QuerySet[Any], zone: tzinfo) -> _Sums:
    loss = F("platform_loss") if wanted.book == PROVIDERS else Value(False)
    told = rows.select_related(None).order_by().annotate(day=TruncDate("at", tzinfo=zone), loss=loss)
    return _read(told, "amount_micros", Count("*"))


def _read(rows: QuerySet[Any], amount: str, number: Aggregate) -> _Sums:
    told = rows.values_list("day", "kind", "currency", "loss").annotate(Sum(amount), number=number)
    return {(day, kind, currency, loss): (micros, lines) for day, kind, currency, loss, micros, lines in told}


def _together(one: _Sums, other: _Sums) -> _Sums:
    found = dict(one)
    for key, (micros, number) in other.items():
        known = found.get(key, (0, 0))
        found[key] = (known[0] + micros, known[1] + number)
    return found


def supply_totals(days: Days, supply: str = "") -> list[SupplyTotal]:
    """The most expensive first."""
    supplies = Supply.objects.filter(slug=supply) if supply else Supply.objects.all()
    names = dict(supplies.values_list("pk", "slug"))
    since, until = _counted_hours(days)
    found = Counter[tuple[int, str, str]]()
    for row in _of_work(names, since, until):
        _add(found, row)
    # What is counted by the hour lies in between.
    for start, end in ((days.start, since), (until, days.end)):
        for row in _of_attempts(names, start, end) if start < end else ():
            _add(found, row)
    keys = sorted({key[:2] for key in found}, key=lambda key: (-found[*key, "spent"], names[key[0]]))
    return [
        SupplyTotal(names[pk], currency, *(found[pk, currency, each] for each in _FIGURES))
        for pk, currency in keys
    ]


_FIGURES: Final = ("delivered", "ended", "degraded", "spent", "wasted")


def _add(found: Counter[tuple[int, str, str]], row: Mapping[str, Any]) -> None:
    for each in _FIGURES:
        found[row["supply"], row["currency"], each] += row[each]


def _counted_hours(days: Days) -> tuple[datetime, datetime]:
    """The hours of these days that were counted and change no more; none: both are the days' end."""
    counted = HourOfWork.objects.aggregate(oldest=Min("hour"), newest=Max("hour"))
    if counted["newest"] is None or not _whole_hours(days):
        return days.end, days.end
    since = min(max(counted["oldest"], days.start), days.end)
    return since, min(max(counted["newest"] - HOUR, since), days.end)


def _of_work(supplies: Iterable[int], since: datetime, until: datetime) -> Iterable[Mapping[str, Any]]:
    hours = HourOfWork.objects.filter(supply__in=supplies, hour__gte=since, hour__lt=until, ended__gt=0)
    told = hours.order_by().values("supply", "currency")
    summed = told.annotate(
        of_delivered=Sum("delivered"),
        of_ended=Sum("ended"),
        degraded=Sum("delivered", default=0, filter=Q(tier="degraded")),
        spent=Sum("spent_micros"),
        wasted=Sum("wasted_micros"),
    )
    figures = {"delivered": F("of_delivered"), "ended": F("of_ended")}
    return summed.values("supply", "currency", "degraded", "spent", "wasted", **figures)


def _of_attempts(supplies: Iterable[int], start: datetime, end: datetime) -> Iterable[Mapping[str, Any]]:
    # By their ids, so that the index of a supply's attempts is entered.
    ended = Attempt.objects.filter(finished_at__gte=start, finished_at__lt=end, supply__in=list(supplies))
    delivered = Q(state="succeeded")
    return (
        ended.order_by()
        .values("supply", currency=F("quote_currency"))
        .annotate(
            ended=Count("pk"),
            delivered=Count("pk", filter=delivered),
            degraded=Count("pk", filter=delivered & Q(tier="degraded")),
            spent=Sum("cost_micros", default=0),
            wasted=Sum("cost_micros", default=0, filter=~delivered),
        )
    )
