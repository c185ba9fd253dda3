"""Workers that die, sleep, overlap or wait for each other: nothing is lost, sent twice or settled twice."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django_q.models import OrmQ

from billing.models import CreditEntry, ProviderUsageEntry
from dispatch import capacity
from dispatch.departures import Departure, depart
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease, Job
from dispatch.sending import Sender
from dispatch.services import cancel, dispatch_scan, follow, reconcile, record_submission, submit
from dispatch.services.record_poll import record_poll
from dispatch.transport import access_to
from tests.engine import VIDEO, Engine
from tests.waiting import until_somebody_waits

A = AttemptState


def test_an_answer_that_comes_after_its_lease_ran_out_is_still_believed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S01: the reconciler took the attempt for lost while its worker still read the provider's answer."""
    posting = submit._posting

    def posting_slowly(*given: Any) -> Any:
        post = posting(*given)

        def posted(ask: Callable[[], None]) -> Any:
            outcome = post(ask)
            engine.step(70)
            return outcome

        return posted

    monkeypatch.setattr(submit, "_posting", posting_slowly)
    job = engine.job()
    engine.finish(job)
    assert engine.attempts(job) == [A.SUCCEEDED]
    assert len(engine.posts()) == 1


def test_a_lease_that_can_not_be_reconciled_stops_no_other(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = engine.job(VIDEO), engine.job(VIDEO)
    dispatch_scan.scan(lambda: engine.now)
    poisoned = CapacityLease.objects.get(attempt__job=first)
    look = reconcile._reconcile_lease

    def fails_for_one(lease: CapacityLease, now: Any) -> str:
        if lease.pk == poisoned.pk:
            raise ZeroDivisionError
        return look(lease, now)

    monkeypatch.setattr(reconcile, "_reconcile_lease", fails_for_one)
    engine.now += capacity.LEASE_TTL * 2
    reconcile.reconcile(engine.now)
    assert CapacityLease.objects.get(attempt__job=second).expires_at > engine.now
    monkeypatch.undo()
    assert reconcile.reconcile(engine.now)["rung_again"] == 1


def test_a_job_whose_worker_died_after_acceptance_goes_on_by_itself(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S15, faults 3 and 4: killed before the answer was stored; found, adopted and billed once."""
    job = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    attempt = Attempt.objects.get(job=job)
    with monkeypatch.context() as killed:
        killed.setattr(record_submission, "record_submission", lambda *_: None)
        submit.submit([attempt.pk], lambda: engine.now)
    OrmQ.objects.all().delete()
    engine.finish(job)
    assert engine.attempts(job) == [A.SUCCEEDED]
    assert list(engine.accepted().values()) == [1]
    assert ProviderUsageEntry.objects.filter(kind="settled").count() == 1


def test_a_worker_that_died_before_the_first_byte_is_proved_to_have_sent_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 2."""
    job = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    submit._claim([Attempt.objects.get(job=job).pk], engine.now)
    OrmQ.objects.all().delete()
    engine.finish(job)
    assert engine.attempts(job) == [A.FAILED, A.SUCCEEDED]
    assert Attempt.objects.get(job=job, number=1).error_code == "not_created"
    assert len(engine.posts()) == 1


def test_a_worker_that_slept_past_its_lease_sends_nothing(engine: Engine) -> None:
    """Fault 7: the look before the first byte finds that the attempt was taken from it."""
    job = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    [attempt] = submit._claim([Attempt.objects.get(job=job).pk], engine.now)
    engine.now += timedelta(seconds=70)
    reconcile.reconcile(engine.now)
    leaving = Departure(attempt, submit._posting(attempt, access_to, engine.now, None))
    with Sender() as sender:
        [ended] = depart([leaving], lambda asking: submit._allow(asking, sender, engine.now))
    record_submission.record_submissions(ended, engine.now)
    assert len(engine.posts()) == 0
    assert engine.attempts(job) == [A.FAILED]
    engine.finish(job)
    assert len(engine.posts()) == 1


def test_one_end_told_many_times_is_settled_once(engine: Engine) -> None:
    """S20, fault 34: polls that overlap."""
    job = engine.job()
    engine.drain()
    engine.now += timedelta(seconds=20)
    with_all = Attempt.objects.select_related("channel", "supply", "provider_job", "job", "policy")
    attempt = with_all.get(job=job)
    result = follow._ask(follow.access_to(attempt.channel), attempt.provider_job.provider_job_id)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(_closing(lambda _: record_poll(copy(attempt), result, engine.now)), range(20)))
    engine.finish(job)
    assert ProviderUsageEntry.objects.filter(kind="settled").count() == 1
    assert CreditEntry.objects.filter(job=job.public_id, kind="charge").count() == 1
    assert engine.balance() == 1_000_000_000 - job.charged_micros


def test_a_submission_and_a_cancellation_lock_in_one_order(engine: Engine) -> None:
    """Fault 13: while a cancellation holds the job, a submission that waits for it holds no lease."""
    job = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    attempt = Attempt.objects.get(job=job)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Job.objects.select_for_update().get(pk=job.pk)
            waiting = pool.submit(_closing(lambda _: submit._claim([attempt.pk], engine.now)), None)
            until_somebody_waits(waiting)
            CapacityLease.objects.select_for_update(nowait=True).get(attempt=attempt)
            cancel.cancel(job.pk, engine.now)
        assert waiting.result() == []
    assert engine.attempts(job) == [A.CANCELLED]


def _closing(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Threads have a connection of their own, which ends with the work."""

    def closed(given: Any) -> Any:
        try:
            return work(given)
        finally:
            connection.close()

    return closed
