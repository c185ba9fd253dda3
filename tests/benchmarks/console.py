"""The console at size: every page, every filter of its lists, and every beat of its live regions, with a
million jobs against a thousand (G12, P1).

What is timed is the whole answer of the web stack, and in it what the database took. BENCH_CONSOLE_JOBS is
another number of jobs, to try it sooner."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any, Final

from tests.benchmarks.installation import installation
from tests.benchmarks.measuring import Figures, Measured, Plan, Program, Report, Row, interleaved

FEW: Final = 1_000
_OF_A_FULL_PAGE: Final = 2  # queries
_AS_FULL: Final = 1.2
MANY: Final = int(os.environ.get("BENCH_CONSOLE_JOBS", 1_000_000))

type Samples = Sequence[Sequence[float]]  # each: of tests.benchmarks.console_product.Sample


@dataclass(frozen=True)
class Asked:
    """One request in all quiet windows, with many jobs and with few."""

    name: str
    kind: str
    many: Sequence[Samples]  # by window
    few: Sequence[Samples]

    def p95(self, place: int = 0) -> Figures:
        """Of milliseconds (0), of those of the database (1) or of the CPU (3); of each window."""
        return Figures.of([_p95(window, place) for window in self.many])

    def p50(self, windows: Sequence[Samples], place: int = 0) -> float:
        return median(sample[place] for window in windows for sample in window)

    @property
    def growth(self) -> float:
        return self.p50(self.many) / self.p50(self.few)

    @property
    def is_as_full(self) -> bool:
        """Whether as many rows are shown: a page that shows more is no slower by the number of jobs."""
        return self.most(self.many, 4) <= _AS_FULL * self.most(self.few, 4) + 1

    def most(self, windows: Sequence[Samples], place: int) -> int:
        """Of queries (2) or of rows (4)."""
        return max(int(sample[place]) for window in windows for sample in window)

    def told(self) -> str:
        whole, database = (self.p50(self.many, place) for place in (0, 1))
        p95, database_p95 = self.p95().median, self.p95(1).median
        cpu = self.p50(self.many, 3)
        return (
            f"{self.name:<46}{whole:7.1f} /{p95:7.1f} ms   database {database:6.1f} /{database_p95:6.1f}"
            f"   CPU {cpu:6.1f}   with few {self.p50(self.few):6.1f}   x {self.growth:4.2f}"
            f"{'' if self.is_as_full else ' with more rows'}"
            f"   {self.most(self.many, 2)} queries, with few {self.most(self.few, 2)}"
        )


def run(plan: Plan) -> Report:
    with ExitStack() as stack:
        programs = {}
        for name, jobs in (("few", FEW), ("many", MANY)):
            environment = stack.enter_context(installation())
            program = Program("tests.benchmarks.console_product", str(jobs), environment=environment)
            programs[name] = stack.enter_context(program)
        measured = interleaved(programs, plan)
        asked = list(_asked(measured, programs["many"].told["kinds"]))
    notes = (
        f"{MANY:,} jobs against {FEW:,}; {len(asked)} requests; of each p50 / p95, the database, our CPU, p50"
        " with few jobs, growth, queries",
        *(each.told() for each in sorted(asked, key=lambda each: -each.p95().median)),
    )
    return Report(
        "console", f"itself with {FEW:,} jobs", plan, tuple(_rows(asked)), measured.discarded, notes
    )


def _asked(measured: Measured, kinds: Mapping[str, str]) -> Iterator[Asked]:
    by_side: dict[str, dict[str, list[Samples]]] = {}
    for side, told in measured.windows.items():
        by_side[side] = defaultdict(list)
        for window in told:
            for name, samples in window.samples.items():
                by_side[side][name].append(samples)
    for name, windows in by_side["many"].items():
        kind = "304" if name.endswith("(304)") else kinds[name]
        if by_side["few"][name]:
            yield Asked(name, kind, windows, by_side["few"][name])


def _rows(asked: Sequence[Asked]) -> Iterator[Row]:
    pages = [each for each in asked if each.kind not in ("beat", "304")]
    slowest, heaviest = _worst(pages, 0), _worst(pages, 1)
    growing = max((each for each in pages if each.is_as_full), key=lambda each: each.growth)
    yield Row(f"slowest page, p95: {slowest.name}", slowest.p95(), None, 300, 60, "ms")
    yield Row(f"most of the database, p95: {heaviest.name}", heaviest.p95(1), None, 50, 8, "ms")
    busiest = _worst(pages, 3)
    yield Row(f"most CPU of ours, p95: {busiest.name}", busiest.p95(3), None, 300, 60, "ms")
    growth = [
        growing.p50([many]) / growing.p50([few]) for many, few in zip(growing.many, growing.few, strict=True)
    ]
    title = f"growth from 1 k of as many rows, p50: {growing.name}"
    yield Row(title, Figures.of(growth), None, 2, 1.3, "times")
    for title, kind, bar in (
        ("list (P1)", "list", 300),
        ("job (P1)", "job", 300),
        ("overview (P1)", "overview", 500),
        ("beat (P1)", "beat", 60),
        ("beat, nothing new (P1)", "304", 20),
    ):
        worst = _worst([each for each in asked if each.kind == kind], 0)
        yield Row(f"slowest {title}, p95: {worst.name}", worst.p95(), None, bar, bar, "ms")
    whole = [
        _p95([sample for each in pages for sample in each.many[number]], 0)
        for number in range(len(slowest.many))
    ]
    yield Row("all pages together, p95", Figures.of(whole), None, 300, 60, "ms")
    # A page that is full asks for the next one, and about how many there are.
    uneven = [each for each in asked if each.most(each.many, 2) > each.most(each.few, 2) + _OF_A_FULL_PAGE]
    yield Row(
        "requests with more queries than with few jobs", Figures.of([len(uneven)]), None, 0, 0, "requests"
    )


def _worst(asked: Iterable[Asked], place: int) -> Asked:
    return max(asked, key=lambda each: each.p95(place).median)


def _p95(samples: Iterable[Any], place: int) -> float:
    ascending = sorted(sample[place] for sample in samples)
    return ascending[ceil(len(ascending) * 0.95) - 1]
