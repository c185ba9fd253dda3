"""Sixty-four reservers at ten slots: the product's path, against one guarded UPDATE and two ways of locking.

Reservations go on until there are a hundred thousand, or for ten minutes; a reserver that sees more than ten
slots taken ends the benchmark without a result."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from tests.benchmarks.installation import installation, server_of
from tests.benchmarks.leases_reserving import SLOTS
from tests.benchmarks.measuring import Figures, Measured, Plan, Program, Report, Row, Window, interleaved

RESERVATIONS: Final = 100_000
LONGEST_S: Final = 600.0  # to get there
HOLD_S: Final = 0.25  # each slot, while its use is measured
REFERENCE: Final = "conditional"
_ARGUMENTS: Final = {
    "ours": ("leases_product", "1", "0"),
    "ours, ten at once": ("leases_product", "10", "0"),
    REFERENCE: ("leases_bare", REFERENCE),
    "counter": ("leases_bare", "counter"),
    "slot rows": ("leases_bare", "slot rows"),
}


def run(plan: Plan) -> Report:
    with ExitStack() as stack:
        environment = stack.enter_context(installation())
        programs = {name: _program(stack, environment, *given) for name, given in _ARGUMENTS.items()}
        measured = interleaved(programs, plan, server_of(environment))
        holding = _program(stack, environment, "leases_product", "1", str(HOLD_S))
        used = Figures.of([_used(holding.window(plan.window_s)) for _ in range(plan.windows)])
        made = sum(window.units for name in programs for window in measured.windows[name])
        for _ in range(int(LONGEST_S / plan.window_s)):
            if made >= RESERVATIONS:
                break
            made += programs["ours, ten at once"].window(plan.window_s).units
    rows = (*_rows(measured), Row("slots in use while all are wanted", used, None, 0.9, 0.98, "share", True))
    note = f"{made} reservations, none of which saw more than {SLOTS} slots taken"
    return Report("leases", "a guarded UPDATE of one counter", plan, rows, measured.discarded, (note,))


def _program(stack: ExitStack, environment: Mapping[str, str], module: str, *arguments: str) -> Program:
    return stack.enter_context(Program(f"tests.benchmarks.{module}", *arguments, environment=environment))


def _rows(measured: Measured) -> tuple[Row, ...]:
    reference = measured.figures(REFERENCE, _rate)

    def row(name: str, bar: float | None = None, goal: float | None = None) -> Row:
        return Row(f"{name}: reserved", measured.figures(name, _rate), reference, bar, goal, "a second", True)

    cpu = Row("ours: CPU of one", measured.figures("ours"), measured.figures(REFERENCE))
    return row("ours", 0, 0.5), row("ours, ten at once"), row("counter"), row("slot rows"), cpu


def _rate(window: Window) -> float:
    return window.units_per_s


def _used(window: Window) -> float:
    return window.units * HOLD_S / (window.wall_s * SLOTS)
