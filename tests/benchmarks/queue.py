"""The fair queue at size: a look that finds nothing free, the read of heads (G4, G5), five hundred starts,
and one tenant's flood among quiet ones (G18).

Each program works on a database of its own; what the machine does besides is watched as ever."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.benchmarks.installation import ROOT, installation
from tests.benchmarks.measuring import Figures, Measured, Plan, Program, Report, Row, interleaved

FEW: Final = 1_000
MANY: Final = 1_000_000
CLAIMED: Final = 60_000  # while an old snapshot keeps what they left from being cleaned away
STARTED: Final = 500
TENANTS: Final = 1_000
FLOOD: Final = 100_000
QUIET: Final = 200


def run(plan: Plan) -> Report:
    scans, reads, pages = _at_sizes(plan)
    aged = _under_an_old_snapshot(plan)
    starts, flood = _told("starts", STARTED), _told("flood", FLOOD, QUIET, TENANTS)
    rows = (
        Row("a scan with nothing free, 1 M waiting, p99", *_p99(scans), 2.0, 1.5, "ms"),
        Row("the same, CPU of our process", *_cpu(scans)),
        Row("heads of 50 jobs (G4), 1 M waiting, p99", *_p99(reads), 1.5, 1.2, "ms"),
        Row("buffers that they touch, beyond 1 k waiting", pages, None, 8, 3, "pages"),
        Row("heads after 60 k claims (G5), p99", *_p99(aged), 3.0, 1.5, "ms"),
        Row("500 jobs started in one scan", Figures.of(starts["seconds"]), None, 2, 1, "s"),
        Row("the same, CPU of our process", Figures.of(starts["cpu_s"]), unit="s"),
        Row("quiet tenants' wait (G18), p95", Figures.of(flood["scans_p95"]), None, 4, 2, "scans"),
        Row("a scan with 1 k tenants (G18)", Figures.of(flood["scan_ms"]), None, 50, 12, "ms"),
        Row("the same, CPU of our process", Figures.of(flood["scan_cpu_ms"]), unit="ms"),
    )
    discarded = scans.discarded + reads.discarded + aged.discarded
    notes = (
        f"{MANY:,} against {FEW:,} jobs of 10 tenants; {CLAIMED:,} claims under an old snapshot against none",
        f"a flood of {FLOOD:,} beside {QUIET} quiet tenants of {TENANTS:,}; the invariants held afterwards",
    )
    return Report("queue", "itself with 1 k waiting, or before", plan, rows, discarded, notes)


def _at_sizes(plan: Plan) -> tuple[Measured, Measured, Figures]:
    with ExitStack() as stack:
        scanning, reading = {}, {}
        for name, jobs in (("few", FEW), ("many", MANY)):
            environment = stack.enter_context(_checked_installation())
            scanning[name] = stack.enter_context(_program("scan", jobs, environment=environment))
            reading[name] = stack.enter_context(_program("heads", environment=environment))
        pages = reading["many"].told["pages"] - reading["few"].told["pages"]
        return interleaved(scanning, plan), interleaved(reading, plan), Figures.of([pages])


def _under_an_old_snapshot(plan: Plan) -> Measured:
    """Interleaved with a queue of the same size that nobody has claimed from."""
    with ExitStack() as stack:
        programs = {}
        for name, claimed in (("few", 0), ("many", CLAIMED)):
            environment = stack.enter_context(_checked_installation())
            programs[name] = stack.enter_context(_program("aged", FLOOD, claimed, environment=environment))
        return interleaved(programs, plan)


@contextmanager
def _checked_installation() -> Iterator[Mapping[str, str]]:
    """The figure is void where an invariant does not hold afterwards."""
    with installation() as environment:
        yield environment
        check = [sys.executable, "-W", "ignore", str(ROOT / "manage.py"), "check_invariants"]
        subprocess.run(check, env=environment, check=True, stdout=subprocess.DEVNULL)


def _told(work: str, *arguments: int) -> Mapping[str, list[float]]:
    """Of a program that measures by itself, and says all when it is ready."""
    with (
        _checked_installation() as environment,
        _program(work, *arguments, environment=environment) as program,
    ):
        return program.told


@contextmanager
def _program(work: str, *arguments: int, environment: Mapping[str, str]) -> Iterator[Program]:
    module = "tests.benchmarks.queue_product"
    with Program(module, work, *map(str, arguments), environment=environment) as program:
        yield program


def _p99(measured: Measured) -> tuple[Figures, Figures]:
    many, few = (measured.figures(name, lambda window: window.p99_ms) for name in ("many", "few"))
    return many, few


def _cpu(measured: Measured) -> tuple[Figures, Figures]:
    return measured.figures("many"), measured.figures("few")
