"""A routing decision with its whole evidence, against LiteLLM's cost-based strategy, by candidates."""

from contextlib import ExitStack
from typing import Final

from tests.benchmarks.measuring import Measured, Plan, Program, Report, Row, interleaved

# Candidates, and the ratio that is the first bar and the goal.
SIZES: Final = {10: (0.3, 0.1), 100: (0.3, 0.1), 1_000: (0.1, 0.03)}
WORKS: Final = ("decision", "decision and snapshot")  # the second adds the document that is stored


def run(plan: Plan) -> Report:
    rows: list[Row] = []
    discarded, version = 0, ""
    for size in SIZES:
        with ExitStack() as stack:
            reference = stack.enter_context(Program("tests.benchmarks.routing_litellm", str(size)))
            programs = {"reference": reference} | {
                work: stack.enter_context(Program("tests.benchmarks.routing_product", str(size), work))
                for work in WORKS
            }
            measured = interleaved(programs, plan)
        rows += _rows(size, measured)
        discarded, version = discarded + measured.discarded, reference.told["version"]
    return Report("routing", f"LiteLLM {version}, cost-based-routing", plan, tuple(rows), discarded)


def _rows(size: int, measured: Measured) -> list[Row]:
    reference = measured.figures("reference")
    decision, stored = (measured.figures(work) for work in WORKS)
    return [
        Row(f"decision with its evidence, {size} candidates", decision, reference, *SIZES[size]),
        Row(f"and the snapshot of it, {size} candidates", stored, reference),
    ]
