"""A look at an attempt is claimed, or recorded, while somebody else decides on it: neither is lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from catalog.audit import Actor
from catalog.providers.types import Accepted, JobStatus
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, ProviderJob
from dispatch.poll_rows import Look, claim_due, write_nothing_new
from dispatch.repository import claim_attempt
from dispatch.services import cancel, decide_submission, record_submission
from dispatch.services.record_poll import record_polls
from tests.engine import Engine
from tests.waiting import until_somebody_waits

A = AttemptState
LI = Actor("li.m", "console")


@pytest.fixture
def elsewhere() -> Iterator[Callable[..., Future[Any]]]:
    """Has something done in a session of its own."""

    def closed(work: Callable[..., Any], *given: Any) -> Any:
        try:
            return work(*given)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        yield lambda work, *given: pool.submit(closed, work, *given)


def before(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]) -> None:
    """`act` at the moment at which the product is about to call `name`, the first time."""
    work = getattr(module, name)

    def later(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(module, name, work)
        act()
        return work(*given, **named)

    monkeypatch.setattr(module, name, later)


def at_provider(engine: Engine) -> Attempt:
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": {"queue_s": 600}}]})
    job = engine.job()
    engine.drain()
    Attempt.objects.filter(job=job).update(next_look_at=engine.now)
    return Attempt.objects.get(job=job)


def uncertain(engine: Engine) -> Attempt:
    rule = {"when": {"call": "submit"}, "times": 1, "do": {"answer": "drop_after_acceptance"}}
    engine.simulator.script({"rules": [rule]})
    job = engine.job()
    engine.drain()
    return Attempt.objects.get(job=job, state="submission_uncertain")


@pytest.mark.parametrize("moment", ["refresh_job", "request_cancel"])
def test_a_customers_wish_reaches_the_provider_though_a_poll_is_claimed_meanwhile(
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Callable[..., Future[Any]],
    moment: str,
) -> None:
    attempt = at_provider(engine)
    until = engine.now + timedelta(minutes=1)

    def claim() -> None:
        claimed = elsewhere(claim_due, {attempt.channel_id: 5}, until, engine.now).result(60)
        assert [each.pk for each in claimed] == ([attempt.pk] if moment == "refresh_job" else [])

    before(monkeypatch, cancel, moment, claim)
    assert engine.api.post(f"/api/v1/jobs/{attempt.job.public_id}/cancel/").status_code == 202
    assert engine.attempts(attempt.job) == [A.CANCEL_REQUESTED]
    engine.finish(attempt.job)
    assert (engine.attempts(attempt.job), attempt.job.state) == ([A.CANCELLED], "cancelled")


def test_a_wish_that_is_repeated_is_told_to_an_attempt_that_never_heard_of_it(engine: Engine) -> None:
    attempt = at_provider(engine)
    type(attempt.job).objects.filter(pk=attempt.job_id).update(cancel_requested_at=engine.now)
    assert engine.api.post(f"/api/v1/jobs/{attempt.job.public_id}/cancel/").status_code == 202
    assert engine.attempts(attempt.job) == [A.CANCEL_REQUESTED]


def test_an_answer_that_comes_late_is_believed_though_a_look_is_claimed_meanwhile(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, elsewhere: Callable[..., Future[Any]]
) -> None:
    attempt = uncertain(engine)
    task = engine.simulator.world.log()["posts"][-1]["task_id"]
    claimed = claim_while(monkeypatch, elsewhere, record_submission, "record_acceptance", attempt)
    accepted = Accepted(task, None, "queued", (), {})
    record_submission.record_submission(Attempt.objects.get(pk=attempt.pk), accepted, engine.now)
    assert not claimed[0].result(60)
    assert engine.attempts(attempt.job) == [A.ACCEPTED]
    engine.finish(attempt.job)
    assert engine.attempts(attempt.job) == [A.SUCCEEDED]


@pytest.mark.parametrize(
    ("step", "decide", "state"),
    [
        (
            "record_acceptance",
            lambda pk, task, now: decide_submission.provider_has_it(pk, task, LI, lambda: now),
            A.ACCEPTED,
        ),
        (
            "fail_as_not_created",
            lambda pk, _, now: decide_submission.provider_does_not_have_it(pk, "not there", LI, now),
            A.FAILED,
        ),
        (
            "abandon",
            lambda pk, _, now: decide_submission.cannot_be_found_out(pk, "no answer", LI, now),
            A.ABANDONED,
        ),
    ],
    ids=["it exists", "it does not", "nobody knows"],
)
def test_an_operators_decision_moves_the_attempt_though_a_look_is_claimed_meanwhile(
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Callable[..., Future[Any]],
    step: str,
    decide: Callable[[int, str, Any], object],
    state: AttemptState,
) -> None:
    attempt = uncertain(engine)
    task = engine.simulator.world.log()["posts"][-1]["task_id"]
    claimed = claim_while(monkeypatch, elsewhere, decide_submission, step, attempt)
    decide(attempt.pk, task, engine.now)
    assert not claimed[0].result(60)
    assert engine.attempts(attempt.job) == [state]


def claim_while(
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: Callable[..., Future[Any]],
    module: Any,
    step: str,
    attempt: Attempt,
) -> list[Future[bool]]:
    """Somebody else claims a look as `step` begins: at once, or as soon as he may."""
    claimed: list[Future[bool]] = []

    def claim() -> None:
        claimed.append(elsewhere(claim_attempt, attempt, attempt.created_at))
        until_somebody_waits(claimed[0])

    before(monkeypatch, module, step, claim)
    return claimed


def test_of_a_quiet_poll_and_one_that_waited_for_it_both_are_counted(
    engine: Engine, elsewhere: Callable[..., Future[Any]]
) -> None:
    attempt = at_provider(engine)
    (quiet,) = claim_due({attempt.channel_id: 5}, engine.now + timedelta(minutes=1), engine.now)
    running = JobStatus("running", "running", progress=None, raw={})
    with transaction.atomic():
        write_nothing_new([Look(quiet, engine.now + timedelta(seconds=9), progress=0.4)], engine.now)
        news = elsewhere(record_polls, {attempt.pk: running}, engine.now)
        until_somebody_waits(news)
    news.result(60)
    told = ProviderJob.objects.get(attempt=attempt)
    assert (told.polls, told.progress, told.status) == (2, 0.4, "running")
