"""G3: one job at low load, from its submission to the first byte of our POST, through real workers.

Both clusters and the pulse run as they do in production; the provider is the simulator over loopback."""

from typing import Final

from tests.benchmarks.installation import installation
from tests.benchmarks.measuring import Figures, Plan, Program, Report, Row

JOBS: Final = 40  # a round


def run(plan: Plan) -> Report:
    """A round for each window that is planned; what others do meanwhile is not watched."""
    with installation() as environment:
        arguments = (str(JOBS), str(plan.windows))
        with Program("tests.benchmarks.dispatch_product", *arguments, environment=environment) as program:
            told = program.told
    rows = (
        Row("submission to our POST, p50", Figures.of(told["p50_ms"]), None, 1_100, 60, "ms"),
        Row("submission to our POST, p99", Figures.of(told["p99_ms"]), None, 1_100, 100, "ms"),
    )
    notes = (f"{plan.windows} rounds of {JOBS} jobs, one at a time; the invariants held afterwards",)
    return Report("dispatch", "nothing but its bars", plan, rows, 0, notes)
