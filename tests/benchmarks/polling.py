"""G10: polls a second and core, each with its result recorded, against a bare loop of `requests`.

And how soon one worker has seen five hundred running jobs of suppliers that take 300 ms to answer."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from tests.benchmarks.installation import installation
from tests.benchmarks.measuring import Figures, Measured, Plan, Program, Report, Row, Window, interleaved

ATTEMPTS: Final = 500
SLOW_S: Final = 0.3
SHORTEST_INTERVAL_S: Final = 10.0  # of a running job, about its supply's p95


def run(plan: Plan) -> Report:
    measured = _against_bare(plan)
    return Report(
        "polling", "a bare loop of requests", plan, _rows(measured, _slow(plan)), measured.discarded
    )


def _against_bare(plan: Plan) -> Measured:
    with ExitStack() as stack:
        address = _provider(stack, 0)
        programs = {"ours": _product(stack, address)}
        programs["bare"] = stack.enter_context(Program("tests.benchmarks.polling_bare", address))
        return interleaved(programs, plan)


def _slow(plan: Plan) -> list[Window]:
    with ExitStack() as stack:
        product = _product(stack, _provider(stack, SLOW_S))
        return [product.window(0) for _ in range(plan.windows)]


def _provider(stack: ExitStack, latency_s: float) -> str:
    provider = stack.enter_context(Program("tests.benchmarks.polling_provider", str(latency_s)))
    return f"http://127.0.0.1:{provider.told['port']}"


def _product(stack: ExitStack, address: str) -> Program:
    environment = stack.enter_context(installation())
    ours = Program("tests.benchmarks.polling_product", address, str(ATTEMPTS), environment=environment)
    return stack.enter_context(ours)


def _rows(measured: Measured, seen: list[Window]) -> tuple[Row, ...]:
    per_core, per_s = (_figures(measured, each) for each in (_per_core, lambda window: window.units_per_s))
    assert all(window.units == ATTEMPTS for window in seen), "each was asked once"
    return (
        Row("polls a second and core, recorded", *per_core, 0.6, 1.0, "polls", more_is_better=True),
        Row("polls a second, one worker", *per_s, unit="polls", more_is_better=True),
        Row(
            f"all {ATTEMPTS} seen, {SLOW_S:g} s an answer",
            Figures.of([window.wall_s for window in seen]),
            None,
            2 * SHORTEST_INTERVAL_S,
            SHORTEST_INTERVAL_S,
            "s",
        ),
    )


def _per_core(window: Window) -> float:
    return window.units / window.cpu_s


def _figures(measured: Measured, of: Callable[[Window], float]) -> tuple[Figures, Figures]:
    return measured.figures("ours", of), measured.figures("bare", of)
