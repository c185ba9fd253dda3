"""Fault 13: a worker's transaction that PostgreSQL ends for a deadlock is begun anew, or waits for a look.

Each deadlock here is a real one, with somebody who takes two locks in the other order and is more patient."""

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Any, Self

import psycopg
import pytest
from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected

from dispatch import capacity
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt
from dispatch.services import (
    dispatch_scan,
    fetch_output,
    reconcile,
    record_poll,
    record_submission,
    serve_queue,
    submit,
)
from tests.engine import Engine

A = AttemptState
WAIT_S = 20
JOBS = "SELECT FROM dispatch_job FOR UPDATE"
ATTEMPTS = "SELECT FROM dispatch_attempt FOR UPDATE"
SLOTS = "SELECT FROM dispatch_occupancy FOR UPDATE"
LINES = "SELECT FROM dispatch_line FOR UPDATE"


class Rival:
    """Holds `first`, and wants `second` once the product waits for `first`: the product is the victim, unless
    it had looked for a deadlock before there was one."""

    def __init__(self, first: str, second: str) -> None:
        self._wishes, self._holds = (first, second), Event()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            self._product = cursor.fetchone()[0]
        self._thread = Thread(target=self._run)
        self.met: list[OperationalError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(2 * WAIT_S)
        assert not self._thread.is_alive()
        assert [type(error.__cause__) for error in self.met] == [DeadlockDetected]

    def begin(self) -> None:
        self._thread.start()
        assert self._holds.wait(WAIT_S)

    def _run(self) -> None:
        parameters = connection.get_connection_params()
        wanted = ("host", "port", "user", "dbname", "password")
        given = {name: parameters[name] for name in wanted if name in parameters}
        with psycopg.connect(**given, autocommit=True) as watch, psycopg.connect(**given) as session:
            session.execute(f"SET deadlock_timeout = '{WAIT_S}s'")
            session.execute(self._wishes[0])
            self._holds.set()
            self._await_the_product(watch)
            session.execute(self._wishes[1])

    def _await_the_product(self, watch: psycopg.Connection[Any]) -> None:
        asked, deadline = "SELECT cardinality(pg_blocking_pids(%s)) > 0", time.monotonic() + WAIT_S
        while not (row := watch.execute(asked, [self._product]).fetchone()) or not row[0]:
            assert time.monotonic() < deadline, "the product never waited"

    def meets(self, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Has `work` done, and keeps what it broke by."""
        try:
            return work(*given, **named)
        except OperationalError as error:
            self.met.append(error)
            raise

    def waits_at(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        """Begins with the first call of the product's function that locks what is to be recorded."""
        work = getattr(module, name)

        def met(*given: Any, **named: Any) -> Any:
            if named.get("to_send"):  # a claim, before anything is sent
                return work(*given, **named)
            monkeypatch.setattr(module, name, work)
            self.begin()
            return self.meets(work, *given, **named)

        monkeypatch.setattr(module, name, met)


def test_a_scan_that_is_the_victim_begins_anew_and_starts_all(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.finish(engine.job())  # so that slots have been counted
    jobs = [engine.job() for _ in range(3)]
    with Rival(LINES, SLOTS) as rival:
        rival.waits_at(monkeypatch, serve_queue, "_write_queue")
        assert dispatch_scan.scan(lambda: engine.now) == 3
    assert [engine.attempts(job) for job in jobs] == [[A.READY]] * 3
    engine.finish(*jobs)
    assert [engine.attempts(job) for job in jobs] == [[A.SUCCEEDED]] * 3


def test_answers_whose_record_is_the_victim_are_recorded_and_nothing_is_sent_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [engine.job() for _ in range(2)]
    with Rival(ATTEMPTS, JOBS) as rival:
        rival.waits_at(monkeypatch, record_submission, "locked_attempts")
        engine.drain()
    assert [engine.attempts(job) for job in jobs] == [[A.ACCEPTED]] * 2
    engine.finish(*jobs)
    assert [engine.attempts(job) for job in jobs] == [[A.SUCCEEDED]] * 2
    assert list(engine.accepted().values()) == [1, 1]


def test_what_a_poll_told_is_recorded_though_its_record_was_the_victim(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = engine.job()
    engine.drain()
    with Rival(ATTEMPTS, JOBS) as rival:
        rival.waits_at(monkeypatch, record_poll, "locked_attempts")
        engine.step(2)
    assert engine.attempts(job) == [A.RUNNING]
    engine.finish(job)
    assert engine.attempts(job) == [A.SUCCEEDED]


def test_an_output_whose_record_was_the_victim_is_kept_as_it_was_fetched(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = engine.job()
    with Rival(ATTEMPTS, JOBS) as rival:
        adopt = fetch_output._adopt

        def meeting(*given: Any) -> None:
            rival.waits_at(monkeypatch, fetch_output, "advance")
            adopt(*given)

        monkeypatch.setattr(fetch_output, "_adopt", meeting)
        engine.run(60)
    assert (engine.attempts(job), list(engine.accepted().values())) == ([A.SUCCEEDED], [1])


def test_a_lost_worker_that_the_reconciler_could_not_record_is_found_by_its_next_look(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    attempt = Attempt.objects.get(job=job)
    submit._claim([attempt.pk], engine.now)
    engine.now += capacity.LEASE_TTL + timedelta(seconds=1)
    with Rival(ATTEMPTS, JOBS) as rival:
        rival.waits_at(monkeypatch, reconcile, "record_uncertain")
        reconcile.reconcile(engine.now)
    assert engine.attempts(job) == [A.SUBMITTING]
    assert reconcile.reconcile(engine.now)["uncertain"] == 1
    assert engine.attempts(job) == [A.SUBMISSION_UNCERTAIN]
