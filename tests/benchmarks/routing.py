"""A routing decision with its whole evidence, against LiteLLM's cost-based strategy, by candidates."""

from contextlib import ExitStack
from typing import Final

from tests.benchmarks.measuring import Measured, Plan, Program, Report, Row, interleaved

# Candidates, and the ratio that is the first bar and the goal.
SIZES: Final = {10: (0.3, 0.1), 100: (0.3, 0.1), 1_000: (0.1, 0.03)}
OURS: Final = {"decision": "route", "decision and its snapshot": "snapshot"}


def run(plan: Plan) -> Report:
    rows: list[Row] = []
    discarded, version = 0, ""
    for size, (bar, goal) in SIZES.items():
        with ExitStack() as stack:
            reference = stack.enter_context(Program("tests.benchmarks.routing_litellm", str(size)))
            programs = {"reference": reference} | {
                name: stack.enter_context(Program("tests.benchmarks.routing_product", str(size), work))
                for name, work in OURS.items()
            }
            measured = interleaved(programs, plan)
        rows += [_row(f"{name}, {size} candidates", name, measured, bar, goal) for name in OURS]
        discarded, version = discarded + measured.discarded, reference.told["version"]
    return Report("routing", f"LiteLLM {version}, cost-based-routing", plan, tuple(rows), discarded)


def _row(title: str, name: str, measured: Measured, bar: float, goal: float) -> Row:
    return Row(title, measured.figures(name), measured.figures("reference"), bar, goal)
