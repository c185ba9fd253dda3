"""One installation of a given size, and its console asked through the whole web stack of this process.

A window is a round of all requests, each some times; of each the time, the database's part, its queries."""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from time import perf_counter, process_time
from typing import Any, Final

import django

django.setup()

from django.core.management import call_command  # noqa: E402 - Django stands only now
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402

from billing.services.sum_books import sum_books  # noqa: E402
from config.history import settle_statistics, write_history  # noqa: E402
from dispatch.invariants import violations  # noqa: E402
from health.models import Alert, HealthEvent, RefusalRecord  # noqa: E402
from tests.benchmarks.console_pages import Request, requests_of, signed_in  # noqa: E402
from tests.benchmarks.serving import serve_windows  # noqa: E402
from tests.every_page import make_every_page  # noqa: E402

TIMES: Final = 6  # each request in a window
DAYS: Final = 120
_PER_JOB: Final = 50  # so many jobs for each alert, health event, refusal and change
_FULL: Final = 1_000  # of each at least, or a page shows less with few jobs
_ROW: Final = b" data-row="

# milliseconds, those in the database, queries, CPU of ours, rows shown
type Sample = tuple[float, float, int, float, int]


class Answers:
    """Asks, and counts what the database does meanwhile."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._database_s, self._queries = 0.0, 0

    def ask(self, request: Request, tag: str = "") -> tuple[Sample, Any]:
        self._database_s, self._queries = 0.0, 0
        with connection.execute_wrapper(self._timed):
            began, cpu_began = perf_counter(), process_time()
            response = self._client.get(request.path, headers=request.headers(tag))
            took_s, cpu_s = perf_counter() - began, process_time() - cpu_began
        rows = b"" if response.status_code == 304 else response.content
        sample = (took_s * 1_000, self._database_s * 1_000, self._queries, cpu_s * 1_000, rows.count(_ROW))
        return sample, response

    def _timed(self, execute: Any, *arguments: Any) -> Any:
        began = perf_counter()
        try:
            return execute(*arguments)
        finally:
            self._database_s += perf_counter() - began
            self._queries += 1


def prepared(jobs: int) -> tuple[list[Request], Client]:
    call_command("collectstatic", interactive=False, verbosity=0)
    world = make_every_page()
    client = signed_in()
    before = set(violations())  # the made-up installation holds slots without leases, say
    write_history(jobs, DAYS, timezone.now(), 0.5, lambda _stored: None)
    settle_statistics()
    broken = set(violations()) - before
    assert not broken, broken
    copies = max(jobs // _PER_JOB, _FULL)
    for model in (Alert, HealthEvent, RefusalRecord):
        _multiply(model, copies)
    _multiply_audit(copies)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
    _keep_house(timezone.now())
    return requests_of(world, client), client


def _keep_house(now: datetime) -> None:
    """What the pages' figures stand on, as it is after some hours."""
    for minutes in range(0, 100, 3):  # a part of the books at a time
        sum_books(now + timedelta(minutes=minutes))


_OLD: Final[Mapping[type, Mapping[str, str]]] = {
    Alert: {
        "public_id": "'alr_' || lpad(number::text, 26, '0')",
        "dedupe_key": "dedupe_key || number",
        "severity": "(ARRAY['warning', 'info'])[1 + number % 2]",
        "opened_at": "now() - number * interval '7 minutes'",
        "last_seen_at": "now() - number * interval '7 minutes'",
        "acknowledged_at": "NULL",
        "acknowledged_by": "''",
        "resolved_at": "now() - number * interval '7 minutes' + interval '2 minutes'",
        "resolved_why": "'it is over'",
        "reraised_at": "NULL",
        "reraises": "0",
        "first_acknowledged_at": "NULL",
        "first_acknowledged_by": "''",
    },
    HealthEvent: {
        "public_id": "'hev_' || lpad(number::text, 26, '0')",
        "at": "now() - number * interval '7 minutes'",
        "to_state": "(ARRAY['healthy', 'degraded', 'circuit_open', 'probing'])[1 + number % 4]",
        "actor": "CASE number % 50 WHEN 0 THEN actor ELSE '' END",
    },
    RefusalRecord: {
        "public_id": "'ref_' || lpad(number::text, 26, '0')",
        "fingerprint": "md5(number::text) || md5('')",
        "probe": "''",
        "ended_at": "CASE WHEN number % 20 > 0 THEN now() - number * interval '7 minutes' END",
        "ended_why": "CASE WHEN number % 20 > 0 THEN 'the provider took it' ELSE '' END",
        "ended_by": "''",
    },
}


def _multiply(model: type, copies: int) -> None:
    """Copies of the newest row, older and older."""
    table = model._meta.db_table  # type: ignore[attr-defined]
    fields = model._meta.concrete_fields  # type: ignore[attr-defined]
    columns = [field.column for field in fields if field.column != "id"]
    values = [_OLD[model].get(column, f"old.{column}") for column in columns]
    statement = (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)}"  # noqa: S608 - our own words
        f" FROM (SELECT * FROM {table} ORDER BY id DESC LIMIT 1) AS old,"
        f" generate_series({copies}, 1, -1) AS number"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _multiply_audit(copies: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO catalog_auditentry (at, actor, source, action, subject, before, after)"
            " SELECT now() - number * interval '7 minutes', 'operator ' || number %% 9, 'console',"
            " 'show content', 'job:job_' || number, NULL, NULL FROM generate_series(%s, 1, -1) AS number",
            [copies],
        )


def main() -> None:
    requests, client = prepared(int(sys.argv[1]))
    answers = Answers(client)
    broken = [
        f"{each.name}: {status}" for each in requests if (status := answers.ask(each)[1].status_code) != 200
    ]
    assert not broken, broken

    def window() -> dict[str, Any]:
        began, cpu_began = perf_counter(), process_time()
        samples: dict[str, list[Sample]] = defaultdict(list)
        for _ in range(TIMES):
            for request in requests:
                for name, sample in _asked(answers, request):
                    samples[name].append(sample)
        told = sorted(sample[0] for each in samples.values() for sample in each)
        return {
            "units": len(told),
            "cpu_s": process_time() - cpu_began,
            "wall_s": perf_counter() - began,
            "p50_ms": told[len(told) // 2],
            "p99_ms": told[int(len(told) * 0.99)],
            "samples": samples,
        }

    kinds = {each.name: each.kind for each in requests}
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    serve_windows(window, kinds=kinds, backends=[backend])


def _asked(answers: Answers, request: Request) -> Iterator[tuple[str, Sample]]:
    """A beat once as if all had changed, and once as if nothing had: then it is answered 304."""
    sample, response = answers.ask(request)
    yield request.name, sample
    if request.kind == "beat":
        again, unchanged = answers.ask(request, response.headers["HX-PTag"])
        if unchanged.status_code == 304:
            yield f"{request.name} (304)", again


if __name__ == "__main__":
    main()
