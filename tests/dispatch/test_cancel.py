"""Cancelling is a wish; the provider's real end wins."""

from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease, Job
from tests.engine import Engine


def cancel(engine: Engine, job: Job) -> int:
    return int(engine.api.post(f"/api/v1/jobs/{job.public_id}/cancel/").status_code)


def test_before_submission_it_is_immediate_and_free(engine: Engine) -> None:
    before = engine.balance()
    job = engine.job()
    assert cancel(engine, job) == 202
    assert engine.reload(job).state == "cancelled"
    engine.run(5)
    assert not engine.simulator.world.log()["posts"]
    assert engine.balance() == before


def test_a_job_in_the_providers_queue_is_cancelled_there(engine: Engine) -> None:
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": {"queue_s": 600}}]})
    job = engine.job()
    engine.drain()
    assert cancel(engine, job) == 202
    assert engine.reload(job).state == "cancel_requested"
    engine.finish(job)
    assert job.state == "cancelled"
    assert engine.attempts(job) == [AttemptState.CANCELLED]
    assert job.charged_micros == 0


def test_a_job_that_already_runs_ends_as_the_provider_ends_it(engine: Engine) -> None:
    job = engine.job()
    engine.drain()
    engine.step(2)
    assert cancel(engine, job) == 202
    engine.finish(job)
    assert job.state == "succeeded"
    assert job.charged_micros > 0


def test_a_finished_job_stays_finished(engine: Engine) -> None:
    job = engine.job()
    engine.finish(job)
    response = engine.api.post(f"/api/v1/jobs/{job.public_id}/cancel/")
    assert (response.status_code, response.json()["code"]) == (409, "job_already_finished")
    assert engine.reload(job).state == "succeeded"


def test_while_nobody_knows_it_frees_no_slot_and_is_sent_once_the_job_is_found(engine: Engine) -> None:
    engine.simulator.script(
        {
            "rules": [
                {
                    "when": {"call": "submit"},
                    "times": 1,
                    "do": {"answer": "drop_after_acceptance", "queue_s": 600},
                }
            ]
        }
    )
    job = engine.job()
    engine.drain()
    assert cancel(engine, job) == 202
    assert CapacityLease.objects.get(attempt__job=job).released_at is None
    engine.finish(job)
    assert job.state == "cancelled"
    assert Attempt.objects.filter(job=job).count() == 1
