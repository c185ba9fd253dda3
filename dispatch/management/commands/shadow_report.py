"""`manage.py shadow_report`: the second order of each policy beside what was done, by model and day."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils.timezone import now

from billing.money import written
from dispatch.queries.shadow_rounds import shadow_rounds
from dispatch.routing.reasons import KEYS
from dispatch.routing.shadow_report import Averages, Row, report


class Command(BaseCommand):
    """Reads what is stored; no provider is called, nothing is routed again."""

    help = "Compares the shadow order with the real one: agreement, and where they differ what was expected."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=7, help="how far back (default %(default)s)")

    def handle(self, *, days: int, **_options: Any) -> None:
        rows = report(shadow_rounds(now() - timedelta(days=days)))
        if not rows:
            self.stdout.write(f"No round of the last {days} days has a shadow order.")
        for row in rows:
            self.stdout.write("\n".join(_lines(row)))


def _lines(row: Row) -> Iterator[str]:
    share = f"{row.agreed} of {row.rounds} agree ({row.agreed / row.rounds:.0%})"
    yield f"{row.model}  {row.day}  shadow {row.shadow_order}: {share}"
    if not row.differed:
        return
    yield f"   real    expected {_averages(row.real, row.currency)}"
    yield f"   shadow  expected {_averages(row.shadow, row.currency)}"
    yield f"   result  {_counted(row.results)}; {_result(row)}"
    yield f"   lost by {_counted({KEYS[reason]: count for reason, count in row.reasons.items()})}"
    for (real, shadow), count in sorted(row.picks.items(), key=lambda item: (-item[1], item[0])):
        yield f"   {count} × {real} → {shadow}"


def _averages(of: Averages, currency: str) -> str:
    parts = [f"cost {_money(of.cost_micros, currency)}", f"p95 {_seconds(of.p95_s)}"]
    if of.score is not None:
        parts.append(f"score {of.score / 1_000_000:.3f}")
    return ", ".join(parts)


def _result(row: Row) -> str:
    return f"took {_seconds(row.real_seconds)}, cost {_money(row.real_cost_micros, row.currency)} on average"


def _counted(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered)


def _money(micros: int | None, currency: str) -> str:
    return "unknown" if micros is None else f"{written(micros)} {currency}"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} s"
