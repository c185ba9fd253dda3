"""The fair queue under several processes: one scan at a time, a takeover, and limits and counts that hold."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
import pytest
from django.db import close_old_connections, connection, transaction

from billing.models import Customer
from catalog.audit import Actor
from dispatch.models import Attempt, Job, Line, TenantQueue
from dispatch.scan_turn import NEXT_LOCK, SCAN_LOCK
from dispatch.services.cancel import cancel
from dispatch.services.dispatch_scan import scan
from dispatch.services.publish import publish
from tests.dispatch.queue_yard import Yard
from tests.engine import VIDEO, Engine
from tests.invariants import assert_invariants


@contextmanager
def another_process_holds(*locks: int) -> Iterator[None]:
    parameters = connection.get_connection_params()
    wanted = {
        name: parameters[name]
        for name in ("host", "port", "user", "dbname", "password")
        if name in parameters
    }
    with psycopg.connect(**wanted, autocommit=True) as other:
        for lock in locks:
            other.execute("SELECT pg_advisory_lock(%s)", [lock])
        yield
        gone = other.info.backend_pid
    while is_there(gone):  # its server process ends a little after it has left
        pass


def is_there(backend: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [backend])
        return bool(cursor.fetchone()[0])


def at_once[T](work: Callable[[Any], T], given: list[Any]) -> list[T]:
    def closing(each: Any) -> T:
        try:
            return work(each)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(given)) as pool:
        return list(pool.map(closing, given))


@pytest.mark.django_db(transaction=True)
def test_who_finds_one_scanning_and_one_waiting_leaves_and_a_dead_holders_lock_is_gone_with_it() -> None:
    yard = Yard()
    yard.jobs(2, yard.tenant(), yard.model(2))
    with another_process_holds(SCAN_LOCK, NEXT_LOCK):
        assert scan(lambda: yard.now) == 0, "whoever waits will see the same rows"
    assert scan(lambda: yard.now) == 2
    assert_invariants()


@pytest.mark.django_db(transaction=True)
def test_who_waits_to_scan_reads_the_clock_when_its_turn_has_come() -> None:
    yard, read = Yard(), []

    def clock() -> datetime:
        read.append(yard.now)
        return yard.now

    with ThreadPoolExecutor(1) as waiting:
        with another_process_holds(SCAN_LOCK):
            scanned = waiting.submit(at_once, scan, [clock])
            while is_free(NEXT_LOCK):
                pass
            assert read == []
        assert scanned.result() == [0]
    assert read == [yard.now]


def is_free(lock: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s", [lock])
        return not cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
def test_many_scans_at_once_start_what_fits_and_nothing_twice() -> None:
    yard = Yard()
    model = yard.model(5, 8, 3)
    for key in [yard.tenant() for _ in range(4)]:
        yard.jobs(5, key, model)
    now = yard.now
    started = at_once(lambda _: scan(lambda: now), [None] * 6)
    assert sum(started) == Attempt.objects.count() == 16
    assert_invariants()
    close_old_connections()


def test_parallel_submissions_never_get_beyond_the_most_that_may_wait(engine: Engine) -> None:
    Customer.objects.filter(pk=engine.customer.pk).update(max_queued=3)
    secret = engine.api._credentials["HTTP_AUTHORIZATION"].rpartition(" ")[2]

    def submit(_: None) -> Any:
        return engine.client(secret).post("/api/v1/jobs/", VIDEO, format="json")

    answers = at_once(submit, [None] * 8)
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [429] * 5
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert (refused.json()["code"], refused.headers["Retry-After"]) == ("queue_full", "10")
    assert TenantQueue.objects.get().waiting == Line.objects.get().waiting == 3


@pytest.mark.django_db(transaction=True)
def test_cancellations_during_scans_and_admissions_leave_counts_that_add_up() -> None:
    """Each takes its locks in the one order: nobody waits for ever, and nothing is counted twice."""
    yard = Yard()
    model, keys = yard.model(3), [yard.tenant() for _ in range(2)]
    jobs = [job for key in keys for job in yard.jobs(12, key, model)]
    now = yard.now
    works: list[Callable[[], object]] = [
        *(lambda: scan(lambda: now) for _ in range(2)),
        lambda: [cancel(job.pk, now) for job in jobs[5:11]],
        lambda: yard.jobs(6, keys[0], model),
    ]
    at_once(lambda work: work(), works)
    assert_invariants()
    assert sum(line.waiting for line in Line.objects.all()) == 24 + 6 - 6 - 3


@pytest.mark.django_db(transaction=True)
def test_jobs_are_accepted_while_their_model_is_being_published() -> None:
    """A job refers to its model's row: a publication that takes long must not hold it against that."""
    yard = Yard()
    model, tenant = yard.model(2), yard.tenant()

    def admit(_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        yard.jobs(1, tenant, model)

    with transaction.atomic():
        publish(model, actor=Actor("li.m", "console"), now=yard.now)
        at_once(admit, [None])
    assert Job.objects.count() == 1
