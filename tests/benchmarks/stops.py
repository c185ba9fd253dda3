"""G14: workers that are stopped for a minute in the middle of their work and go on, two hundred times.

Beside them the clusters run as they do in production and take over what the stopped ones had begun. Every
change of jobs, attempts and leases is recorded by triggers, and read afterwards."""

from typing import Final

from tests.benchmarks.installation import installation
from tests.benchmarks.measuring import Figures, Plan, Program, Report, Row

STOPS: Final = 200
AT_ONCE: Final = 20
STOPPED_S: Final = 60.0


def run(plan: Plan) -> Report:
    """Whatever is planned, all of them once; what others do meanwhile disturbs nothing here."""
    with installation() as environment:
        arguments = (str(STOPS), str(AT_ONCE), str(STOPPED_S))
        with Program("tests.benchmarks.stops_product", *arguments, environment=environment) as program:
            told = program.told

    def row(name: str, unit: str) -> Row:
        return Row(f"G14 {name}", Figures.of([told[name]]), None, 0, 0, unit)

    rows = (row("late writes", "changes"), row("double submissions", "lives"), row("lost", "lives"))
    met = ", ".join(f"{count} while {doing}" for doing, count in sorted(told["met"].items()))
    notes = (
        f"{told['stops']} stops of {STOPPED_S:g} s, {AT_ONCE} at once: {met}",
        f"{told['lives']} lives, {told['changes']} recorded changes; the invariants held afterwards",
    )
    return Report("stops", "nothing but its bars", plan, rows, 0, notes)
