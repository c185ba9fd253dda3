"""Failures that users of such systems reported (S…), and faults that a day in production brings: each ends
well here. The simulator's own log says what the provider saw."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from billing.models import ProviderUsageEntry
from catalog.models import Channel, PublicModel
from dispatch import tasks
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease, Job, ProviderEvent, ProviderJob, SelectionRound
from dispatch.services import dispatch_scan, look_at_job, look_at_lots, submit
from health.models import Alert
from tests.engine import Engine

A = AttemptState


def test_a_task_found_under_the_id_of_another_job_is_not_adopted_and_the_search_ends(engine: Engine) -> None:
    """Fault 24: one provider job never belongs to two attempts, and the second does not wait for ever."""
    other = engine.job()
    engine.finish(other)
    engine.script("submit", answer="drop_after_acceptance")
    job = engine.job()
    engine.drain()
    found = list(engine.simulator.world._tasks)[-1]
    ProviderJob.objects.filter(attempt__job=other).update(provider_job_id=found)
    engine.run(2_400, step_s=60)
    assert engine.attempts(job) == [A.ABANDONED]
    assert engine.reload(job).error_code == "submission_unknown"


def test_a_job_that_nobody_else_can_serve_ends_with_the_error_of_its_attempt_at_once(engine: Engine) -> None:
    """S37: nothing is tried twice, nothing is written again every second."""
    engine.script("submit", error="ServerOverloaded")
    job = engine.job()
    job.public_model.bindings.exclude(tier="exact").delete()
    engine.finish(job, within_s=20)
    assert (job.state, job.error_code) == ("failed", "generation_failed")
    assert SelectionRound.objects.filter(job=job).count() <= 2
    assert engine.balance() == 1_000_000_000


def test_a_key_that_is_revoked_between_two_attempts_ends_the_job_at_once(engine: Engine) -> None:
    """Fault 52."""
    engine.script("submit", error="ServerOverloaded")
    job = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    submit.submit([Attempt.objects.get(job=job).pk], lambda: engine.now)
    engine.key.revoked_at = engine.now
    engine.key.save()
    engine.step()
    assert (engine.reload(job).state, job.error_code) == ("failed", "access_revoked")
    assert len(engine.posts()) == 1
    assert engine.balance() == 1_000_000_000


def test_a_job_that_can_not_be_routed_stops_no_other(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One poisoned row at the head of the queue is set aside; at its deadline it ends like any other."""
    poisoned, healthy = engine.job(), engine.job()
    route = look_at_job.inputs_for

    def fails_for_one(job: Job, *given: Any) -> Any:
        if job.pk == poisoned.pk:
            raise ZeroDivisionError
        return route(job, *given)

    for module in (look_at_job, look_at_lots):
        monkeypatch.setattr(module, "inputs_for", fails_for_one)
    engine.finish(healthy)
    assert engine.attempts(poisoned) == []
    engine.run(1_300, step_s=100)
    assert engine.reload(poisoned).state == "expired"


def test_what_was_reserved_at_admission_is_charged_whatever_the_price_is_now(engine: Engine) -> None:
    """S22: a price that an operator changes, or takes away, in between keeps no result from its customer."""
    cheaper, gone = engine.job(), engine.job()
    engine.drain()
    model = cheaper.public_model
    model.price = {"900": model.price["900"]}
    model.save()
    engine.finish(cheaper, gone)
    assert {job.charged_micros for job in (cheaper, gone)} == {cheaper.reserved_micros}
    assert engine.balance() == 1_000_000_000 - 2 * cheaper.reserved_micros


def test_a_wish_to_cancel_outlives_the_execution_deadline(engine: Engine) -> None:
    """S18: what the customer asked for and the provider did is cancelled, not failed."""
    engine.script("submit", run_s=-1)
    engine.script("status", error="InternalServiceError")
    job = engine.job()
    engine.drain()
    engine.step(2)
    engine.api.post(f"/api/v1/jobs/{job.public_id}/cancel/")
    engine.run(3_700, step_s=300)
    assert engine.attempts(job) == [A.OUTCOME_UNCERTAIN]
    engine.simulator.script({"rules": [{"when": {"call": "status"}, "do": {}}]})
    for task in engine.simulator.world._tasks.values():
        task.life = replace(task.life, cancelled_at=engine.now.timestamp())
    engine.finish(job, within_s=600)
    assert job.state == "cancelled"


def test_a_cancellation_that_the_provider_did_not_hear_is_asked_for_again(engine: Engine) -> None:
    """S18, fault 50: a failed call or a lost task does not let a queued job run after all."""
    engine.script("submit", queue_s=600)
    engine.script("cancel", times=1, error="InternalServiceError")
    job = engine.job()
    engine.drain()
    engine.api.post(f"/api/v1/jobs/{job.public_id}/cancel/")
    engine.finish(job, within_s=200)
    assert (job.state, job.charged_micros) == ("cancelled", 0)
    outcomes = ProviderEvent.objects.filter(kind="cancel").order_by("id").values_list("outcome", flat=True)
    assert list(outcomes) == ["failed", "requested"]


def test_a_degraded_result_costs_the_lesser_price_of_its_admission(engine: Engine) -> None:
    """S27: priced for what was delivered, and by the price that the customer was shown."""
    Channel.objects.filter(slug="ark-singapore").update(state="disabled")
    model = PublicModel.objects.get(slug="seedance-2.0-933")
    model.bindings.get(tier="exact").supply.__class__.objects.filter(slug="beijing-seedance-2-0").update(
        state="disabled"
    )
    job = engine.job()
    engine.drain()
    model.price = {"933": model.price["933"]}
    model.save()
    engine.finish(job)
    assert (job.state, job.actual_profile) == ("succeeded", "900")
    assert (job.reserved_micros, job.charged_micros) == (1_500_000, 1_100_000)
    body = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert body["degraded"] is True
    assert engine.balance() == 1_000_000_000 - 1_100_000


def test_a_cancelled_second_attempt_touches_nothing_of_the_first(engine: Engine) -> None:
    """S05: ids and money belong to attempts."""
    engine.script("submit", times=1, fail="InternalServiceError")
    job = engine.job()
    engine.drain()
    while engine.attempts(job) != [A.FAILED]:
        engine.now += timedelta(seconds=5)
        tasks.poll()
    booked = list(ProviderUsageEntry.objects.values_list("kind", "amount_micros"))
    calls = len(engine.posts())
    dispatch_scan.scan(lambda: engine.now)
    assert engine.attempts(job) == [A.FAILED, A.READY]
    engine.api.post(f"/api/v1/jobs/{job.public_id}/cancel/")
    engine.run(20)
    assert engine.attempts(job) == [A.FAILED, A.CANCELLED]
    assert engine.reload(job).state == "cancelled"
    assert len(engine.posts()) == calls
    assert not ProviderEvent.objects.filter(kind="cancel").exists()
    assert list(ProviderUsageEntry.objects.values_list("kind", "amount_micros")) == booked
    assert engine.balance() == 1_000_000_000


def test_after_acceptance_all_calls_go_to_the_account_that_accepted(engine: Engine) -> None:
    """S06: failing polls neither switch nor fail the job."""
    engine.script("submit", times=1, error="RateLimitExceeded.EndpointRPMExceeded")
    engine.script("status", times=2, error="InternalServiceError")
    job = engine.job()
    public_id = job.public_id
    engine.finish(job)
    assert engine.attempts(job) == [A.FAILED, A.SUCCEEDED]
    first, second = Attempt.objects.filter(job=job).order_by("number")
    assert {post["task_id"] != "" for post in engine.simulator.world.log()["posts"]} == {True, False}
    assert len(engine.posts()) == 2
    assert ProviderJob.objects.get(attempt__job=job).channel_id == second.channel_id != first.channel_id
    assert engine.api.get(f"/api/v1/jobs/{public_id}/").json()["state"] == "succeeded"


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("SUCCEEDED", "succeeded"),
        (" succeed ", "succeeded"),
        ("expired", "failed"),
        ("Canceled", "failed"),
        ("unknown", "running"),
        ("", "running"),
        ("polishing", "running"),
    ],
)
def test_a_providers_words_are_read_as_they_are_meant(engine: Engine, word: str, state: str) -> None:
    """S09: a word nobody knows changes nothing and is told to operators once."""
    engine.script("submit", sequence=[[0, "queued"], [5, word]])
    job = engine.job()
    engine.run(60, step_s=4)
    assert engine.reload(job).state == state
    told = Alert.objects.filter(code="unknown_provider_status")
    assert told.count() == (1 if state == "running" else 0)
    assert engine.balance() == 1_000_000_000 - (job.reserved_micros if state != "failed" else 0)


def test_a_success_after_the_execution_deadline_is_delivered_and_booked_once(engine: Engine) -> None:
    """S12."""
    engine.script("submit", run_s=3_900)
    job = engine.job()
    engine.run(3_700, step_s=200)
    assert engine.attempts(job) == [A.OUTCOME_UNCERTAIN]
    body = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert (body["state"], body["delayed"]) == ("running", True)
    assert CapacityLease.objects.get(attempt__job=job).state == "unknown"
    engine.finish(job, within_s=900)
    assert (job.state, job.charged_micros) == ("succeeded", job.reserved_micros)
    assert ProviderUsageEntry.objects.filter(kind="settled").count() == 1


def test_a_success_without_an_output_ends_at_once_and_costs_nothing(engine: Engine) -> None:
    """S13: neither polled for ever nor charged."""
    engine.script("submit", without_output=True)
    job = engine.job()
    engine.finish(job, within_s=60)
    assert (job.state, job.charged_micros) == ("failed", 0)
    assert engine.balance() == 1_000_000_000


def test_a_submission_that_was_given_up_is_looked_for_a_day_and_never_adopted_late(engine: Engine) -> None:
    """S12: what is discovered late is kept and its worst cost stands; the customer's job stays ended."""
    engine.script("list", answer="not_json")
    engine.script("submit", answer="drop_after_acceptance")
    job, never_found = engine.job(), engine.job()
    engine.run(2_400, step_s=120)
    assert engine.attempts(job) == engine.attempts(never_found) == [A.ABANDONED]
    found = Attempt.objects.get(job=job).client_request_key
    known = engine.simulator.world._tasks
    for task in [task for task in known.values() if task.reference != found]:
        del known[task.id]
    engine.simulator.script({"rules": [{"when": {"call": "list"}, "do": {}}]})
    engine.run(8_000, step_s=1_000)
    assert ProviderEvent.objects.filter(attempt__job=job, kind="recover", outcome="found").count() == 1
    assert Attempt.objects.get(job=job).next_look_at is None
    assert Attempt.objects.get(job=never_found).next_look_at is not None
    engine.run(90_000, step_s=3_000)
    assert Attempt.objects.get(job=never_found).next_look_at is None
    assert (engine.attempts(job), engine.reload(job).state) == ([A.ABANDONED], "failed")
    assert ProviderUsageEntry.objects.filter(kind="settled", platform_loss=True).count() == 2
    assert engine.balance() == 1_000_000_000
    assert len(engine.posts()) == 2
