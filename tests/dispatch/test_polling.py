"""How jobs are followed: in time, whatever another supplier does, and never backwards."""

import time
from datetime import timedelta
from functools import partial
from itertools import pairwise
from threading import Event, Semaphore
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import InterfaceError, connection
from django.test.utils import CaptureQueriesContext

from catalog.models import Channel
from catalog.providers.types import JobStatus, PollFailure
from catalog.providers.volcengine_ark import VolcengineArk
from catalog.simulator.faces import volcengine_ark
from dispatch import live_catalogue, polling, selection_facts, tasks
from dispatch.backoff import poll_interval_s
from dispatch.lifecycle import FINAL_JOB_STATES, AttemptState
from dispatch.models import Attempt, CapacityLease, Job, ProviderEvent, ProviderJob
from dispatch.poll_rows import Claimed
from dispatch.polling import Answered, Polling, polls_ahead, threads_wanted
from dispatch.services import follow
from dispatch.services.record_poll import record_polls
from health.models import Alert, SupplyHealth
from tests.engine import Engine
from tests.factories import NOW

A = AttemptState
BEIJING = "beijing-account-key"


def script(engine: Engine, call: str, times: int | None = None, account: str = "", **do: Any) -> None:
    rule: dict[str, Any] = {"when": {"call": call, "account": account}, "do": do}
    engine.simulator.script({"rules": [rule if times is None else {**rule, "times": times}]})


def at(engine: Engine, channel: str) -> Job:
    """A job that only this channel may take, at the provider."""
    Channel.objects.filter(slug=channel).update(state="enabled")
    Channel.objects.exclude(slug=channel).update(state="disabled")
    live_catalogue._kept.clear()
    job = engine.job()
    engine.drain()
    return job


def provider_job(job: Job) -> ProviderJob:
    return ProviderJob.objects.get(attempt__job=job)


def next_look_s(engine: Engine, job: Job) -> float:
    at = Attempt.objects.get(job=job).next_look_at
    assert at is not None
    return (at - engine.now).total_seconds()


def poll_at_its_time(engine: Engine, job: Job) -> None:
    engine.now = max(engine.now, Attempt.objects.get(job=job).next_look_at or engine.now)
    tasks.poll()


def claimed(channel: int) -> Claimed:
    return Claimed(1, "att_1", channel, 1, "running", 1, NOW, None, "cgt-1", "running", "running", 0)


def waiting_for(told: Event) -> PollFailure:
    assert told.wait(60)
    return PollFailure(False, None, "it took long")


def test_threads_go_round_and_no_channel_takes_more_than_its_own() -> None:
    five = Polling(threads=5, per_channel=3)
    assert five.room([1, 2]) == {1: 3, 2: 2}
    assert five.room([1]) == {1: 3}
    assert sum(five.room([1, 2, 3, 4, 5, 6, 7]).values()) == 5
    told = Event()
    for _ in range(3):
        five.begin(claimed(1), lambda: waiting_for(told), 60)
    assert five.room([1, 2]) == {2: 2}
    told.set()
    came = 0
    while came < 3:
        came += len(five.answered(60))
    assert five.room([1])[1] >= 3


def test_a_quick_channel_is_asked_more_at_once_than_it_has_threads_and_a_slow_one_is_not() -> None:
    assert polls_ahead(0, 32) == 32, "nothing is known of it"
    assert polls_ahead(0.0015, 32) == 128
    assert polls_ahead(0.005, 32) == 128
    assert polls_ahead(0.3, 32) == 53
    assert polls_ahead(2, 32) == 32


def test_a_channel_has_threads_for_the_time_that_its_answers_take() -> None:
    assert threads_wanted(0) == threads_wanted(0.001) == 2
    assert threads_wanted(0.03) == 10
    assert threads_wanted(0.3) == 100


def test_while_no_answer_comes_all_are_asked_soon() -> None:
    many, asked, told = Polling(threads=20, per_channel=12), Semaphore(0), Event()

    def ask() -> PollFailure:
        asked.release()
        return waiting_for(told)

    for _ in range(12):
        many.begin(claimed(1), ask, 60)
    began = time.monotonic()
    for _ in range(12):
        while not asked.acquire(timeout=0.01):
            assert many.answered(0.2) == []
    assert time.monotonic() - began < 50, "two only would hold the others up"
    told.set()
    came = 0
    while came < 12:
        came += len(many.answered(60))
    assert many.room([1])[1] >= 12


def test_who_waited_too_long_for_a_thread_is_not_asked_and_makes_room() -> None:
    one, told, asked = Polling(threads=1, per_channel=1), Event(), list[str]()

    def ask(which: str) -> PollFailure:
        asked.append(which)
        return waiting_for(told)

    one.begin(claimed(1), partial(ask, "at once"), 60)
    one.begin(claimed(1), partial(ask, "too late"), 0.01)
    one.begin(claimed(1), partial(ask, "in time"), 60)
    time.sleep(0.02)
    told.set()
    came: list[Answered] = []
    while len(came) < 3:
        came += one.answered(60)
    assert [answer.result is None for answer in came] == [False, True, False]
    assert asked == ["at once", "in time"]
    assert one.room([1]) == {1: 1}


@pytest.mark.parametrize(("more_is_due", "at_once"), [(True, 2), (False, 4)])
def test_answers_are_gathered_while_the_threads_have_something_to_ask(
    more_is_due: bool, at_once: int
) -> None:
    four, told = (
        Polling(threads=4, per_channel=4, gather_s=3600 if more_is_due else 3),
        [Event() for _ in range(4)],
    )
    for each in told:
        four.begin(claimed(1), partial(waiting_for, each), 60)
    for each in told[:2] if more_is_due else told:
        each.set()
    assert len(four.answered(60, more_is_due)) == at_once
    for each in told:
        each.set()


def test_a_supplier_that_hangs_delays_no_other(
    engine: Engine, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 25: for as long as it hangs it has its own threads, and the worker goes home."""
    monkeypatch.setattr(follow, "TASK_S", 1)
    settings.POLL_DEADLINE_S, settings.POLL_THREADS, settings.POLL_THREADS_PER_CHANNEL = 8, 6, 3
    polling.forget_polls()
    others = [at(engine, "ark-singapore") for _ in range(3)]
    hanging = [at(engine, "ark-beijing") for _ in range(5)]
    script(engine, "status", account=BEIJING, answer="hang")
    engine.now += timedelta(seconds=10)
    began = time.monotonic()
    while [job for job in others if engine.attempts(job) == [A.ACCEPTED]]:
        tasks.poll()
    assert time.monotonic() - began < settings.POLL_DEADLINE_S, "nobody waited for the one that hangs"
    assert {engine.attempts(job)[0] for job in others} == {A.GENERATED}
    assert {provider_job(job).polls for job in hanging} == {0}
    while not ProviderJob.objects.filter(attempt__job__in=hanging, failed_polls_in_a_row=1).exists():
        tasks.poll()
    assert time.monotonic() - began >= settings.POLL_DEADLINE_S
    assert {engine.attempts(job)[0] for job in hanging} == {A.ACCEPTED}
    assert not SupplyHealth.objects.exclude(state="healthy").exists(), "a poll opens no circuit"
    engine.simulator.script({"rules": [{"when": {"call": "status"}, "do": {}}]})
    engine.finish(*hanging, *others)


def test_an_answer_that_takes_seconds_is_recorded_by_the_task_that_asked(engine: Engine) -> None:
    """No other process can collect it, and nothing says when this one polls again."""
    script(engine, "submit", queue_s=0, run_s=1)
    job = engine.job()
    engine.drain()
    script(engine, "status", latency_s=follow.PATIENCE_S + 1)
    engine.now += timedelta(seconds=10)
    tasks.poll()
    assert engine.attempts(job) == [A.GENERATED]


def test_an_answer_from_before_the_last_claim_counts_only_where_it_tells_an_end(engine: Engine) -> None:
    script(engine, "submit", queue_s=0, run_s=500)
    job = engine.job()
    engine.run(20)
    seen = Attempt.objects.get(job=job)
    told = {name: getattr(provider_job(job), name) for name in ("polls", "not_found_in_a_row", "progress")}
    older = {seen.pk: seen.state_version - 1}
    record_polls({seen.pk: PollFailure(not_found=True)}, engine.now, older)
    record_polls({seen.pk: JobStatus("running", "running", progress=0.01)}, engine.now, older)
    assert {name: getattr(provider_job(job), name) for name in told} == told
    assert Attempt.objects.get(job=job).next_look_at == seen.next_look_at
    record_polls({seen.pk: PollFailure(not_found=True)}, engine.now, {seen.pk: seen.state_version})
    assert provider_job(job).not_found_in_a_row == 1
    record_polls({seen.pk: JobStatus("failed", "failed")}, engine.now, older)
    assert engine.attempts(job) == [A.FAILED]


def test_what_is_new_is_recorded_though_the_line_broke_while_the_rest_was_written(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise InterfaceError("the connection is closed")

    monkeypatch.setattr(follow, "write_nothing_new", broken)
    job = engine.job()
    engine.finish(job)
    assert job.state == "succeeded"


def test_polls_that_say_nothing_new_are_recorded_together(engine: Engine, settings: LazySettings) -> None:
    script(engine, "submit", queue_s=0, run_s=500)
    jobs = [engine.job() for _ in range(5)]
    engine.run(20)
    before = {row.pk: (row.polls, row.quiet_polls) for row in ProviderJob.objects.all()}
    versions = dict(Attempt.objects.values_list("pk", "state_version"))
    engine.now += timedelta(seconds=40)
    settings.POLL_GATHER_MS = 2_000  # in which even a slow machine has asked for all of them
    polling.forget_polls()
    with CaptureQueriesContext(connection) as asked:
        tasks.poll()
    writing = ("UPDATE", "WITH", "INSERT")
    writes = [query["sql"] for query in asked if query["sql"].lstrip().startswith(writing)]
    assert len(writes) <= 6, writes  # the bell's answer, claims, and what was said: few for all of them
    for row in ProviderJob.objects.all():
        assert (row.polls, row.quiet_polls) == tuple(count + 1 for count in before[row.pk])
        assert row.polled_at == engine.now
    for attempt in Attempt.objects.all():
        assert attempt.state_version == versions[attempt.pk] + 2
        assert attempt.next_look_at is not None
        wait_s = poll_interval_s("running", provider_job(attempt.job).quiet_polls)
        assert (attempt.next_look_at - engine.now).total_seconds() == pytest.approx(wait_s, rel=0.2)
    assert len(set(Attempt.objects.values_list("next_look_at", flat=True))) == len(jobs), "not all at once"
    assert not CapacityLease.objects.filter(released_at=None, expires_at__lte=engine.now).exists()


def test_a_provider_is_left_alone_for_as_long_as_it_asks_but_not_past_the_deadline(engine: Engine) -> None:
    """503 with Retry-After, failures without one, and one of a day."""
    script(engine, "submit", run_s=9_000)
    job = engine.job()
    engine.drain()
    script(engine, "status", times=1, error="ServerOverloaded", status=503, retry_after="200")
    poll_at_its_time(engine, job)
    assert 160 <= next_look_s(engine, job) <= 240
    script(engine, "status", times=2, error="InternalServiceError")
    for waits in ((16, 24), (32, 48)):
        poll_at_its_time(engine, job)
        assert waits[0] <= next_look_s(engine, job) <= waits[1]
    script(engine, "status", times=1, error="ServerOverloaded", status=429, retry_after="86400")
    poll_at_its_time(engine, job)
    attempt = Attempt.objects.get(job=job)
    assert attempt.next_look_at == attempt.execution_deadline_at
    poll_at_its_time(engine, job)
    assert engine.attempts(job) == [A.OUTCOME_UNCERTAIN]
    assert Alert.objects.get(code="stuck_attempt").resolved_at is None
    engine.finish(job, within_s=10_000)
    assert job.state == "failed", "half an hour later it is given up"
    assert Alert.objects.get(code="stuck_attempt").resolved_at is not None


def test_a_task_that_is_not_found_once_goes_on_and_three_times_is_uncertain(engine: Engine) -> None:
    """Fault 30; and what turns up again is delivered."""
    once, lost = engine.job(), engine.job()
    engine.drain()
    for job, times in ((once, 1), (lost, 3)):
        reference = Attempt.objects.get(job=job).client_request_key
        rule = {"when": {"call": "status", "reference": reference}, "times": times}
        engine.simulator.script({"rules": [{**rule, "do": {"error": "ResourceNotFound"}}]})
    engine.now += timedelta(seconds=3)
    tasks.poll()
    assert provider_job(once).not_found_in_a_row == provider_job(lost).not_found_in_a_row == 1
    assert engine.attempts(once) == engine.attempts(lost) == [A.ACCEPTED]
    for _ in range(2):
        engine.now += timedelta(seconds=50)
        tasks.poll()
    assert engine.attempts(lost) == [A.OUTCOME_UNCERTAIN]
    assert provider_job(once).not_found_in_a_row == 0
    assert CapacityLease.objects.get(attempt__job=lost, released_at=None).state == "unknown"
    engine.finish(once, lost)
    assert (once.state, lost.state) == ("succeeded", "succeeded")
    assert engine.attempts(lost) == [A.SUCCEEDED], "no second attempt while nobody knew"
    assert Alert.objects.get(code="stuck_attempt").resolved_why == "the provider says succeeded"


@pytest.mark.parametrize(
    "change",
    [
        {"status": "run\0ning"},
        {"status": "run\ud800ning"},
        {"usage": {"total_tokens": 10**400}},
        {"usage": {"a\0": 1}},
        {"content": {"video_url": "https://a.example/\0"}},
    ],
)
def test_an_answer_that_holds_what_nobody_can_keep_ends_like_any_other(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    document = volcengine_ark._document
    monkeypatch.setattr(volcengine_ark, "_document", lambda *given: document(*given) | change)
    job = engine.job()
    engine.run(4 * 3600, step_s=240)
    assert engine.reload(job).state in FINAL_JOB_STATES


def test_a_poll_that_breaks_is_one_that_failed_and_deadlines_go_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.script(run_s=10_000)
    job = engine.job()
    engine.step(5)
    monkeypatch.setattr(VolcengineArk, "poll", lambda *_: 1 / 0)
    engine.run(3_900, step_s=60)
    assert engine.attempts(job) == ["outcome_uncertain"]


def test_an_answer_that_breaks_its_recording_keeps_no_deadline_from_passing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.script(run_s=10_000)
    job = engine.job()
    engine.step(5)
    spoiled = JobStatus("running", "run\0ning")
    monkeypatch.setattr(VolcengineArk, "poll", lambda *_: spoiled)
    engine.run(2 * 3600, step_s=120)
    assert engine.attempts(job) == ["abandoned"]


def test_a_provider_that_goes_back_moves_nothing_back(engine: Engine) -> None:
    """Fault 29: `queued` after `running` is kept, and an unknown word is told once."""
    words = ["running", "queued", "queued", "polishing", "polishing", "running", "succeeded"]
    script(engine, "submit", sequence=[[20 * number, word] for number, word in enumerate(words)])
    job = engine.job()
    engine.drain()
    seen = []
    for number in range(6):
        engine.now = NOW + timedelta(seconds=20 * number + 5)
        Attempt.objects.filter(job=job).update(next_look_at=engine.now)
        tasks.poll()
        seen.append(engine.attempts(job)[0])
    assert seen == [A.RUNNING] * 6
    events = ProviderEvent.objects.filter(attempt__job=job, kind="poll").order_by("id")
    assert list(events.values_list("outcome", flat=True)) == [
        "running",
        "provider_queued",
        "unknown",
        "running",
    ]
    assert Alert.objects.filter(code="unknown_provider_status").count() == 1
    engine.finish(job)
    assert job.state == "succeeded"


def test_the_pace_of_polls_follows_how_long_the_supply_takes(engine: Engine) -> None:
    first = engine.job()
    engine.finish(first)
    selection_facts._kept_p95.clear()
    supply = Attempt.objects.get(job=first).supply_id
    assert selection_facts.p95_seconds(supply, engine.now) is not None
    selection_facts._kept_p95[supply] = (engine.now, 100)
    script(engine, "submit", queue_s=0, run_s=500)
    job = engine.job()
    engine.run(12, step_s=3)
    created_at = Attempt.objects.get(job=job).created_at
    looks = []
    while (engine.now - created_at).total_seconds() < 200:
        poll_at_its_time(engine, job)
        selection_facts._kept_p95[supply] = (engine.now, 100)
        looks.append((engine.now - created_at).total_seconds())
    about = [look for look in looks if 80 <= look <= 150]
    assert len(about) >= 5, looks
    assert max(later - earlier for earlier, later in pairwise(about)) <= 12
