"""What becomes of a submission that does not simply succeed. The provider's own log says what it saw."""

import pytest

from dispatch import tasks
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease, Job, ProviderEvent
from health.models import Alert, ChannelHealth, SupplyHealth
from tests.engine import VIDEO, Engine

A = AttemptState
LOST_AFTER_ACCEPTANCE = [
    "drop_after_acceptance",
    "reset_after_acceptance",
    "truncated",
    "not_json",
    "missing_id",
]


def submit_once(engine: Engine, answer: str, **wishes: object) -> Job:
    engine.simulator.script(
        {"rules": [{"when": {"call": "submit"}, "times": 1, "do": {"answer": answer, **wishes}}]}
    )
    job = engine.job()
    engine.drain()
    return job


@pytest.mark.parametrize("answer", LOST_AFTER_ACCEPTANCE)
def test_a_lost_answer_leaves_the_submission_uncertain_and_it_is_found_by_looking(
    engine: Engine, answer: str
) -> None:
    job = submit_once(engine, answer)
    assert engine.attempts(job) == [A.SUBMISSION_UNCERTAIN]
    body = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert (body["state"], body["delayed"], body["error"]) == ("running", True, None)
    assert CapacityLease.objects.get(attempt__job=job).state == "unknown"
    engine.finish(job)
    assert job.state == "succeeded"
    assert list(engine.accepted().values()) == [1]
    assert len(engine.simulator.world.log()["posts"]) == 1
    assert Alert.objects.get(code="submission_uncertain").resolved_why == "found at the provider"


@pytest.mark.parametrize("answer", ["drop_before_response", "reset_before_response"])
def test_a_submission_that_is_proved_absent_may_switch_to_another_supply(engine: Engine, answer: str) -> None:
    job = submit_once(engine, answer)
    assert engine.attempts(job) == [A.SUBMISSION_UNCERTAIN]
    engine.run(80)
    assert engine.attempts(job) == [A.SUBMISSION_UNCERTAIN], "one listing proves nothing"
    engine.finish(job, within_s=300)
    assert engine.attempts(job) == [A.FAILED, A.SUCCEEDED]
    first, second = Attempt.objects.filter(job=job).order_by("number")
    assert (first.error_code, first.retryable) == ("not_created", True)
    assert first.supply_id != second.supply_id
    absent = ProviderEvent.objects.filter(attempt=first, kind="recover", outcome="absent")
    assert (absent.last().at - absent.first().at).total_seconds() >= 60


def test_while_nobody_knows_nothing_is_posted_again_and_no_second_attempt_begins(engine: Engine) -> None:
    engine.simulator.script({"rules": [{"when": {"call": "list"}, "do": {"answer": "not_json"}}]})
    job = submit_once(engine, "drop_after_acceptance")
    engine.run(1_000, step_s=40)
    assert engine.attempts(job) == [A.SUBMISSION_UNCERTAIN]
    assert len(engine.simulator.world.log()["posts"]) == 1


def test_what_nobody_could_find_out_is_given_up_at_the_deadline_and_its_slot_stays_in_quarantine(
    engine: Engine,
) -> None:
    engine.simulator.script({"rules": [{"when": {"call": "list"}, "do": {"answer": "not_json"}}]})
    job = submit_once(engine, "drop_after_acceptance")
    engine.run(2_400, step_s=60)
    assert engine.attempts(job) == [A.ABANDONED]
    assert (engine.reload(job).state, job.error_code) == ("failed", "submission_unknown")
    assert Alert.objects.get(code="submission_abandoned").severity == "critical"
    assert job.charged_micros == 0
    assert Attempt.objects.get(job=job).cost_micros > 0, "what may have been charged counts as our loss"
    assert CapacityLease.objects.get(attempt__job=job).state == "unknown"
    engine.run(2_000, step_s=100)
    assert CapacityLease.objects.get(attempt__job=job).state == "unknown", "it may run for an hour"
    engine.run(200, step_s=100)
    lease = CapacityLease.objects.get(attempt__job=job)
    assert (lease.state, lease.outcome) == ("released", "unproven")


def test_a_refused_connection_is_proved_unsent_and_switches_once(engine: Engine) -> None:
    job = engine.job()
    beijing = job.public_model.bindings.get(tier="exact").supply.channel
    beijing.base_url = "http://127.0.0.1:9/ark/api/v3"
    beijing.save()
    engine.finish(job)
    assert engine.attempts(job) == [A.FAILED, A.SUCCEEDED]
    first = Attempt.objects.get(job=job, number=1)
    assert (first.error_code, first.error_scope, first.transport_stage) == (
        "network",
        "channel",
        "connecting",
    )
    assert len(engine.simulator.world.log()["posts"]) == 1
    assert ChannelHealth.objects.get(channel=beijing).state == "degraded"


@pytest.mark.parametrize("error", ["ServerOverloaded", "ModelNotOpen"])
def test_a_refusal_of_the_supply_switches_to_another(engine: Engine, error: str) -> None:
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "times": 1, "do": {"error": error}}]})
    job = engine.job()
    engine.finish(job)
    assert engine.attempts(job) == [A.FAILED, A.SUCCEEDED]
    assert list(engine.accepted().values()) == [1]


def test_a_refused_prompt_is_never_sent_elsewhere_and_harms_nobody(engine: Engine) -> None:
    error = "InputTextSensitiveContentDetected"
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": {"error": error}}]})
    job = engine.job()
    engine.finish(job)
    assert engine.attempts(job) == [A.FAILED]
    body = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert body["error"]["code"] == "content_refused"
    assert not SupplyHealth.objects.exclude(state="healthy").exists()
    assert not ChannelHealth.objects.exclude(state="healthy").exists()


def test_a_revoked_account_is_out_at_once_and_the_customer_is_served_by_another(engine: Engine) -> None:
    engine.simulator.script({"accounts": {"beijing-account-key": {"state": "revoked"}}})
    jobs = [engine.job() for _ in range(3)]
    engine.finish(*jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    assert ChannelHealth.objects.get(channel__slug="ark-beijing").state == "circuit_open"
    later = engine.job()
    engine.finish(later)
    assert engine.attempts(later) == [A.SUCCEEDED], "no attempt is spent on a key known to be bad"
    assert Alert.objects.filter(code="channel_circuit_open", resolved_at=None).count() == 1


def test_a_failed_generation_costs_the_customer_nothing(engine: Engine) -> None:
    engine.simulator.script(
        {"rules": [{"when": {"call": "submit"}, "do": {"fail": "OutputVideoSensitiveContentDetected"}}]}
    )
    job = engine.job(VIDEO)
    engine.finish(job)
    assert (job.state, job.error_code, job.charged_micros) == ("failed", "content_refused", 0)
    engine.customer.refresh_from_db()
    assert engine.customer.balance_micros == 1_000_000_000


def test_one_that_breaks_its_preparation_is_never_sent_and_holds_up_none_of_its_batch(engine: Engine) -> None:
    jobs = [engine.job() for _ in range(3)]
    tasks.scan_now()
    broken = Attempt.objects.get(job=jobs[1])
    Attempt.objects.filter(pk=broken.pk).update(compile_plan={"method": "POST"})
    engine.drain()
    broken.refresh_from_db()
    assert (broken.state, broken.error_code, broken.transport_stage) == (
        "failed",
        "not_created",
        "connecting",
    )
    assert [engine.attempts(job)[0] for job in (jobs[0], jobs[2])] == [A.ACCEPTED] * 2
    engine.finish(*jobs)
    assert engine.attempts(jobs[1]) == [A.FAILED, A.SUCCEEDED]
    assert list(engine.accepted().values()) == [1, 1, 1]


def test_a_task_that_rings_twice_sends_once(engine: Engine) -> None:
    job = engine.job()
    tasks.scan_now()
    attempt = Attempt.objects.get(job=job)
    tasks.submit(attempt.pk)
    tasks.submit(attempt.pk)
    engine.finish(job)
    assert list(engine.accepted().values()) == [1]
    assert len(engine.simulator.world.log()["posts"]) == 1
