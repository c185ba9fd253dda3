"""Whole lives of jobs in psycopg alone, fifty to a commit; frozen, and nothing of the product in it.

The rows are those of one life that the product led before (its public id is the first argument), copied with
ids of their own, so that they are as wide, as indexed and as constrained. Six commits lead fifty lives from
the reservation of their slots to the end of their books; LIVES are led a window, by two connections."""

import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import batched
from typing import Any, Final

import psycopg

from tests.benchmarks.serving import serve_batches

BATCH: Final = 50
CLIENTS: Final = 2
Copies = Mapping[str, str]  # the columns that are not as in the template, as SQL


def _new_id(prefix: str) -> str:
    return f"'{prefix}_' || left(translate(gen_random_uuid()::text, '-', ''), 26)"


_ADMITTED: Final[Copies] = {
    "public_id": _new_id("job"),
    "state": "'queued'",
    "state_version": "1",
    "created_at": "now()",
    "started_at": "NULL",
    "finished_at": "NULL",
    "next_action_at": "'2100-01-01'",  # nobody else begins it
    "idempotency_key": "NULL",
    "provider_cost_micros": "0",
    "charged_micros": "0",
    "error_code": "''",
    "error_message": "''",
}
_READY: Final[Copies] = {
    "public_id": _new_id("att"),
    "job_id": "round.job_id",
    "selection_round_id": "round.id",
    "client_request_key": "'bench-' || round.job_id",
    "state": "'ready'",
    "state_version": "1",
    "created_at": "now()",
    "next_look_at": "NULL",
    "execution_deadline_at": "NULL",
    "request_started_at": "NULL",
    "body_sent_at": "NULL",
    "accepted_at": "NULL",
    "evidence_at": "NULL",
    "finished_at": "NULL",
    "cost_micros": "NULL",
    "error_category": "''",
    "error_code": "''",
    "error_message": "''",
}
_HELD: Final[Copies] = {
    "token": _new_id("lse"),
    "attempt_id": "attempt.id",
    "state": "'live'",
    "granted_at": "now()",
    "renewed_at": "now()",
    "expires_at": "now() + interval '1 minute'",
    "released_at": "NULL",
    "outcome": "''",
}
_KNOWN: Final[Copies] = {
    "attempt_id": "attempt.id",
    "provider_job_id": "'bench-' || attempt.id",
    "raw_status": "''",
    "status": "''",
    "raw_failure": "NULL",
    "polls": "0",
    "submitted_at": "now()",
    "polled_at": "NULL",
    "completed_at": "NULL",
}
_OF_ATTEMPT: Final[Copies] = {"attempt": "attempt.public_id", "at": "now()"}
_OF_JOB: Final[Copies] = {"job": "job.public_id", "at": "now()"}

_MOVED: Final = """
UPDATE dispatch_attempt SET state = '{}', state_version = state_version + 1, {}
WHERE job_id = ANY(%(jobs)s)"""
_JOB_MOVED: Final = """
UPDATE dispatch_job SET state = '{}', state_version = state_version + 1, {} WHERE id = ANY(%(jobs)s)"""
_RENEWED: Final = """
UPDATE dispatch_capacitylease lease SET renewed_at = now(), expires_at = now() + interval '1 minute'
FROM dispatch_attempt attempt WHERE attempt.id = lease.attempt_id AND attempt.job_id = ANY(%(jobs)s)"""
_RELEASED: Final = """
UPDATE dispatch_capacitylease lease SET state = 'released', released_at = now(), outcome = 'failed'
FROM dispatch_attempt attempt WHERE attempt.id = lease.attempt_id AND attempt.job_id = ANY(%(jobs)s)"""
_TOLD: Final = """
UPDATE dispatch_providerjob told
SET raw_status = '{0}', status = '{0}', polls = polls + 1, polled_at = now(), {1}
FROM dispatch_attempt attempt WHERE attempt.id = told.attempt_id AND attempt.job_id = ANY(%(jobs)s)"""
_COUNTED: Final = """
UPDATE dispatch_occupancy SET confirmed = confirmed + (%(change)s * cardinality(%(jobs)s::bigint[]))
WHERE id IN (SELECT id FROM dispatch_occupancy
             WHERE (kind, subject_id) IN (('b_channel', %(channel)s), ('c_supply', %(supply)s))
             ORDER BY kind, subject_id FOR UPDATE)"""
_PAID: Final = """
UPDATE billing_customer SET balance_micros = balance_micros + %(sign)s * (
    SELECT sum(reserved_micros) FROM dispatch_job WHERE id = ANY(%(jobs)s)) WHERE id = %(customer)s"""
_SETTLED: Final = (
    "cost_micros = 0, finished_at = now(), evidence_at = now(), next_look_at = NULL,"
    " error_category = 'request', error_code = 'invalid_request', error_message = 'refused'"
)


class Floor:
    def __init__(self, template: str) -> None:
        self.connection = psycopg.connect(os.environ["DATABASE_URL"])
        self.columns: dict[str, list[str]] = {}
        row = self.connection.execute(
            """SELECT job.id AS job, job.public_id AS job_name, job.customer_id AS customer,
                      attempt.id AS attempt, attempt.public_id AS attempt_name,
                      attempt.selection_round_id AS round, attempt.channel_id AS channel,
                      attempt.supply_id AS supply FROM dispatch_job job
               JOIN dispatch_attempt attempt ON attempt.job_id = job.id WHERE job.public_id = %s""",
            [template],
        )
        columns = [column.name for column in row.description or ()]
        self.template: dict[str, Any] = dict(zip(columns, row.fetchone() or (), strict=True))
        self.connection.commit()

    def admit(self, lives: int) -> list[int]:
        source = "generate_series(1, %(lives)s) WHERE copied.id = %(job)s RETURNING id"
        with self.connection.transaction():
            jobs = [number for (number,) in self._copy("dispatch_job", _ADMITTED, source, lives=lives)]
            self._credit("reserve", jobs)
        return jobs

    def live(self, jobs: list[int]) -> None:
        for step in (self._reserve, self._claim, self._accept, self._first_poll, self._last_poll, self._end):
            with self.connection.transaction():
                step(jobs)

    def _reserve(self, jobs: list[int]) -> None:
        self._do("SELECT id FROM dispatch_job WHERE id = ANY(%(jobs)s) ORDER BY id FOR UPDATE", jobs)
        self._do(_COUNTED, jobs, change=1)
        rounds = {"public_id": _new_id("rnd"), "job_id": "wanted.job", "created_at": "now()"}
        self._copy_each(
            "dispatch_selectionround", rounds, "unnest(%(jobs)s::bigint[]) AS wanted(job)", "round", jobs
        )
        self._copy_each(
            "dispatch_attempt", _READY, self._among("dispatch_selectionround", "round"), "attempt", jobs
        )
        self._copy_of_attempts("dispatch_capacitylease", _HELD, "copied.attempt_id = %(attempt)s", jobs)
        self._do(_JOB_MOVED.format("dispatching", "started_at = now(), next_action_at = NULL"), jobs)

    def _claim(self, jobs: list[int]) -> None:
        times = "request_started_at = now(), body_sent_at = now(), execution_deadline_at = now() + '1 hour'"
        self._do(_MOVED.format("submitting", times), jobs)
        self._do(_RENEWED, jobs)
        self._do(_JOB_MOVED.format("running", "next_action_at = NULL"), jobs)

    def _accept(self, jobs: list[int]) -> None:
        self._do(
            _MOVED.format("accepted", "accepted_at = now(), next_look_at = now() + interval '1 hour'"), jobs
        )
        self._copy_of_attempts("dispatch_providerjob", _KNOWN, "copied.attempt_id = %(attempt)s", jobs)
        self._use("expected", jobs)
        self._event(0, jobs)
        self._do(_RENEWED, jobs)

    def _first_poll(self, jobs: list[int]) -> None:
        self._event(1, jobs)
        self._do(_TOLD.format("running", "quiet_polls = 0"), jobs)
        self._do(_MOVED.format("running", "next_look_at = now() + interval '1 hour'"), jobs)
        self._do(_RENEWED, jobs)

    def _last_poll(self, jobs: list[int]) -> None:
        self._event(2, jobs)
        failure = "(SELECT raw_failure FROM dispatch_providerjob WHERE attempt_id = %(attempt)s)"
        self._do(_TOLD.format("failed", f"completed_at = now(), raw_failure = {failure}"), jobs)

    def _end(self, jobs: list[int]) -> None:
        self._do("SELECT id FROM dispatch_job WHERE id = ANY(%(jobs)s) ORDER BY id FOR UPDATE", jobs)
        self._do(_MOVED.format("failed", _SETTLED), jobs)
        self._do(_RELEASED, jobs)
        self._do(_COUNTED, jobs, change=-1)
        self._use("reversal", jobs)
        self._use("settled", jobs)
        self._credit("release", jobs)
        self._do(_JOB_MOVED.format("failed", "finished_at = now(), error_code = 'invalid_request'"), jobs)

    def _event(self, number: int, jobs: list[int]) -> None:
        which = f"""copied.id = (SELECT id FROM dispatch_providerevent WHERE attempt_id = %(attempt)s
                    ORDER BY id OFFSET {number} LIMIT 1)"""  # noqa: S608
        own = {"attempt_id": "attempt.id", "at": "now()"}
        self._copy_of_attempts("dispatch_providerevent", own, which, jobs)

    def _use(self, kind: str, jobs: list[int]) -> None:
        which = f"copied.attempt = %(attempt_name)s AND copied.kind = '{kind}'"
        self._copy_of_attempts("billing_providerusageentry", _OF_ATTEMPT, which, jobs)

    def _credit(self, kind: str, jobs: list[int]) -> None:
        which = f"copied.job = %(job_name)s AND copied.kind = '{kind}'"
        source = f"{self._among('dispatch_job', 'job', 'id')} AND {which}"
        self._copy("billing_creditentry", _OF_JOB, source, jobs=jobs)
        self._do(_PAID, jobs, sign=-1 if kind == "reserve" else 1)

    def _copy_of_attempts(self, table: str, own: Copies, which: str, jobs: list[int]) -> None:
        self._copy(table, own, f"{self._among('dispatch_attempt', 'attempt')} AND {which}", jobs=jobs)

    def _copy_each(self, table: str, own: Copies, source: str, template: str, jobs: list[int]) -> None:
        joined = "AND" if "WHERE" in source else "WHERE"
        self._copy(table, own, f"{source} {joined} copied.id = %({template})s", jobs=jobs)

    def _among(self, table: str, name: str, column: str = "job_id") -> str:
        return f"{table} AS {name} WHERE {name}.{column} = ANY(%(jobs)s)"

    def _copy(self, table: str, own: Copies, source: str, **given: Any) -> list[tuple[Any, ...]]:
        columns = self._columns(table)
        values = ", ".join(own.get(column) or f"copied.{column}" for column in columns)
        into = f"INSERT INTO {table} ({', '.join(columns)})"
        statement = f"{into} SELECT {values} FROM {table} AS copied, {source}"  # noqa: S608 - our own words
        done = self.connection.execute(statement.encode(), {**self.template, **given})
        return done.fetchall() if done.description else []

    def _columns(self, table: str) -> list[str]:
        if table not in self.columns:
            found = self.connection.execute(
                """SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0
                   AND NOT attisdropped AND attname <> 'id'""",
                [table],
            )
            self.columns[table] = [name for (name,) in found]
        return self.columns[table]

    def _do(self, statement: str, jobs: list[int], **given: Any) -> None:
        self.connection.execute(statement.encode(), {**self.template, "jobs": jobs, **given})


def main(template: str, lives: int) -> None:
    clients = [Floor(template) for _ in range(CLIENTS)]
    admitted: list[int] = []

    def admit() -> None:
        admitted[:] = clients[0].admit(lives)

    def all_lives() -> int:
        with ThreadPoolExecutor(CLIENTS) as pool:
            for _ in pool.map(_live, clients, _shares(admitted)):
                pass
        return lives

    serve_batches(all_lives, prepare=admit)


def _live(client: Floor, jobs: list[int]) -> None:
    for some in batched(jobs, BATCH):
        client.live(list(some))


def _shares(jobs: list[int]) -> Iterator[list[int]]:
    return (jobs[number::CLIENTS] for number in range(CLIENTS))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
