"""The figures that are kept by the hour, as charts and tables want them: the last day, and a week before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Max, Q, Sum

from billing.models import CostRuleVersion
from catalog.models import PublicModel, Supply
from dispatch.hours import COUNTED_EVERY, HOUR, hour_of
from dispatch.models import HourOfQueue, HourOfWork

HOURS: Final = 24
WEEK: Final = timedelta(days=7)
SUPPLIES_SHOWN: Final = 12
MOST_SERIES: Final = 5  # of a chart; beyond it lines can no longer be told apart


def hours_until(now: datetime) -> list[datetime]:
    """The begins of the last HOURS hours, the present one last."""
    last = hour_of(now)
    return [last - index * HOUR for index in reversed(range(HOURS))]


@dataclass(frozen=True, slots=True)
class Rate:
    samples: int = 0
    successes: int = 0

    @property
    def value(self) -> float | None:
        return self.successes / self.samples if self.samples else None


@dataclass(frozen=True, slots=True)
class Pair[T]:
    """One hour of the last day, and the same one a week before."""

    hour: datetime
    now: T
    before: T


@dataclass(frozen=True, slots=True)
class Cost:
    """Of the attempts that ended in a day. `versions`: numbers of the cost rules that were in force."""

    supply: str
    currency: str
    delivered: int
    spent_micros: int
    wasted_micros: int
    versions: Sequence[int] = ()
    before_micros: int | None = None  # what a success cost in the same day a week before

    @property
    def per_success_micros(self) -> int | None:
        return self.spent_micros // self.delivered if self.delivered else None

    @property
    def wasted_share(self) -> float:
        return self.wasted_micros / self.spent_micros if self.spent_micros else 0.0


@dataclass(frozen=True)
class DayOfCharts:
    """`counted_at`: when the hours were counted last; None: never."""

    success: Sequence[Pair[Rate]]
    waiting: Sequence[Pair[int | None]]
    costs: Sequence[Cost]  # the most spent first
    counted_at: datetime | None
    rate: Rate  # of the whole day
    rate_before: Rate


def day_of_charts(now: datetime) -> DayOfCharts:
    """Five queries."""
    success = _success(now)
    return DayOfCharts(
        success=success,
        waiting=_waiting(now),
        costs=costs(now)[:SUPPLIES_SHOWN],
        counted_at=HourOfWork.objects.aggregate(at=Max("counted_at"))["at"],
        rate=_sum([each.now for each in success]),
        rate_before=_sum([each.before for each in success]),
    )


def _sum(rates: Sequence[Rate]) -> Rate:
    return Rate(sum(each.samples for each in rates), sum(each.successes for each in rates))


def _both_days(now: datetime) -> Q:
    hours = hours_until(now)
    return Q(hour__gte=hours[0]) | Q(hour__gte=hours[0] - WEEK, hour__lte=hours[-1] - WEEK)


def _success(now: datetime) -> list[Pair[Rate]]:
    rows = HourOfWork.objects.filter(_both_days(now)).values("hour").order_by("hour")
    told = rows.annotate(n=Sum("samples"), good=Sum("successes"))
    found = {row["hour"]: Rate(row["n"], row["good"]) for row in told}
    return [Pair(hour, found.get(hour, Rate()), found.get(hour - WEEK, Rate())) for hour in hours_until(now)]


def _waiting(now: datetime) -> list[Pair[int | None]]:
    found = dict(HourOfQueue.objects.filter(_both_days(now)).values_list("hour", "waiting"))
    return [Pair(hour, found.get(hour), found.get(hour - WEEK)) for hour in hours_until(now)]


def costs(now: datetime, supply: Supply | None = None) -> list[Cost]:
    """By supply and currency, where anything ended in the last day; two queries."""
    rows = HourOfWork.objects.filter(_both_days(now))
    rows = rows.filter(supply=supply) if supply else rows
    since = hours_until(now)[0]
    today = Q(hour__gte=since)
    summed = rows.values("supply_id", "supply__slug", "currency").annotate(
        ended=Sum("ended", filter=today, default=0),
        good=Sum("delivered", filter=today, default=0),
        spent=Sum("spent_micros", filter=today, default=0),
        wasted=Sum("wasted_micros", filter=today, default=0),
        good_before=Sum("delivered", filter=~today, default=0),
        spent_before=Sum("spent_micros", filter=~today, default=0),
    )
    told = [row for row in summed.order_by("-spent", "supply__slug") if row["ended"]]
    versions = _versions([row["supply_id"] for row in told], since, now)
    return [
        Cost(
            supply=row["supply__slug"],
            currency=row["currency"],
            delivered=row["good"],
            spent_micros=row["spent"],
            wasted_micros=row["wasted"],
            versions=versions.get(row["supply_id"], ()),
            before_micros=row["spent_before"] // row["good_before"] if row["good_before"] else None,
        )
        for row in told
    ]


def _versions(supplies: Sequence[int], since: datetime, now: datetime) -> Mapping[int, list[int]]:
    """Of the cost rules that were in force at any time since then."""
    rows = CostRuleVersion.objects.filter(
        Q(effective_to=None) | Q(effective_to__gt=since),
        rule__supply__in=supplies,
        cancelled_at=None,
        effective_from__lte=now,
    )
    found: dict[int, list[int]] = {}
    for supply, number in rows.order_by("number").values_list("rule__supply_id", "number"):
        found.setdefault(supply, []).append(number)
    return found


@dataclass(frozen=True, slots=True)
class DayOfModel:
    """`begun`: jobs for which a supply was selected for the first time in the last day."""

    begun: int = 0
    rate: Rate = field(default_factory=Rate)
    spent: Sequence[tuple[str, int, int]] = ()  # currency, micros, jobs delivered

    @property
    def costs(self) -> list[tuple[str, int]]:
        """What a success came to, by currency."""
        return [(currency, micros // delivered) for currency, micros, delivered in self.spent if delivered]


def days_of_models(now: datetime) -> Mapping[int, DayOfModel]:
    """By model; one query."""
    rows = HourOfWork.objects.filter(hour__gte=hours_until(now)[0]).values("public_model_id", "currency")
    told = rows.annotate(
        all=Sum("picks"),
        second=Sum("switches"),
        n=Sum("samples"),
        good=Sum("successes"),
        spent=Sum("spent_micros"),
        jobs=Sum("delivered"),
    )
    found: dict[int, DayOfModel] = {}
    for row in told.order_by("public_model_id", "currency"):
        had = found.get(row["public_model_id"], DayOfModel())
        found[row["public_model_id"]] = DayOfModel(
            had.begun + row["all"] - row["second"],
            Rate(had.rate.samples + row["n"], had.rate.successes + row["good"]),
            [*had.spent, (row["currency"], row["spent"], row["jobs"])],
        )
    return found


@dataclass(frozen=True)
class Picks:
    """What each supply of a model was given. `by_hour` holds a number for each of `supplies`, which have the
    most picks first; those beyond MOST_SERIES are one, named ""."""

    hours: Sequence[datetime]
    supplies: Sequence[str]
    by_hour: Sequence[Sequence[int]]
    totals: Sequence[int]
    by_binding: Mapping[str, int]  # by supply@tier
    counted_at: datetime | None
    next_count_at: datetime  # never in the past: an overdue count is due now

    @property
    def total(self) -> int:
        return sum(self.totals)

    def share(self, binding: str) -> float | None:
        return self.by_binding.get(binding, 0) / self.total if self.total else None


def picks_of(model: PublicModel, now: datetime) -> Picks:
    """Two queries."""
    hours = hours_until(now)
    rows = list(
        HourOfWork.objects.filter(public_model=model, hour__gte=hours[0])
        .values("hour", "supply__slug", "tier")
        .annotate(n=Sum("picks"), at=Max("counted_at"))
        .order_by("hour")
    )
    by_supply: dict[str, int] = {}
    by_binding: dict[str, int] = {}
    for row in rows:
        supply, key = row["supply__slug"], f"{row['supply__slug']}@{row['tier']}"
        by_supply[supply] = by_supply.get(supply, 0) + row["n"]
        by_binding[key] = by_binding.get(key, 0) + row["n"]
    ordered = sorted(
        (each for each in by_supply if by_supply[each]), key=lambda each: (-by_supply[each], each)
    )
    named = ordered if len(ordered) <= MOST_SERIES else [*ordered[: MOST_SERIES - 1], ""]
    table = {hour: [0] * len(named) for hour in hours}
    for row in rows:
        if row["n"] and row["hour"] in table:
            place = named.index(row["supply__slug"]) if row["supply__slug"] in named else len(named) - 1
            table[row["hour"]][place] += row["n"]
    by_hour = [table[hour] for hour in hours]
    totals = [sum(column) for column in zip(*by_hour, strict=True)] if named else []
    counted_at = max((row["at"] for row in rows), default=None)
    last = HourOfWork.objects.aggregate(at=Max("counted_at"))["at"]
    next_count_at = max(last + COUNTED_EVERY, now) if last else now
    return Picks(hours, named, by_hour, totals, by_binding, counted_at, next_count_at)
