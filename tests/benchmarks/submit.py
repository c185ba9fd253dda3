"""`POST /api/v1/jobs/` whole (key, schema, price, credit, idempotency, queue) against a bare row inserted."""

from contextlib import ExitStack

from tests.benchmarks.installation import installation
from tests.benchmarks.measuring import Plan, Program, Report, Row, interleaved


def run(plan: Plan) -> Report:
    with ExitStack() as stack:
        environment = stack.enter_context(installation())
        # Ours first: the bare insert repeats a row that it finds.
        ours = stack.enter_context(Program("tests.benchmarks.submit_product", environment=environment))
        bare = stack.enter_context(Program("tests.benchmarks.submit_bare", environment=environment))
        measured = interleaved({"ours": ours, "bare": bare}, plan)
    commits = ours.told["commits"]
    rows = (
        Row(
            "p50 of a submission",
            measured.figures("ours", lambda window: window.p50_ms),
            measured.figures("bare", lambda window: window.p50_ms),
            5,
            3,
            "ms",
        ),
        Row(
            "p99 of a submission",
            measured.figures("ours", lambda window: window.p99_ms),
            measured.figures("bare", lambda window: window.p99_ms),
            6,
            3,
            "ms",
        ),
        Row("CPU of a submission", measured.figures("ours"), measured.figures("bare")),
    )
    return Report(
        "submit", "one row inserted and committed by psycopg", plan, rows, measured.discarded, (commits,)
    )
