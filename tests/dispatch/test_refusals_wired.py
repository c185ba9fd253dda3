"""Content that a provider refused, through the whole engine; the provider's own log says what it saw."""

from datetime import datetime, timedelta
from typing import Any

from billing.models import Customer
from catalog.models import PublicModel, Supply
from catalog.revision import bump_revision
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, Job, SelectionRound
from dispatch.queries.waiting_job import waiting_of
from dispatch.waiting import Code
from health.models import Alert, ChannelHealth, HealthEvent, RefusalRecord, SupplyHealth
from tests.engine import IMAGE, VIDEO, Engine
from tests.factories import NOW

REFUSED = "InputTextSensitiveContentDetected"


def refuse(engine: Engine, times: int | None = None, **wishes: object) -> None:
    rule = {"when": {"call": "submit"}, "times": times, "do": {"error": REFUSED, **wishes}}
    engine.simulator.script({"rules": [rule]})


def wait_until(engine: Engine, at: datetime) -> None:
    """One step to that moment."""
    engine.step((at - engine.now).total_seconds())


def refused_once(engine: Engine, body: dict[str, Any]) -> Job:
    refuse(engine, times=1)
    job = engine.job(body)
    engine.finish(job)
    assert job.error_code == "content_refused"
    return job


def reasons(job: Job) -> set[str | None]:
    """Of the job's latest selection."""
    latest = SelectionRound.objects.filter(job=job).latest("number")
    return {each["reason"] for each in latest.snapshot["decision"]["candidates"].values()}


def close_on_refusal(slug: str) -> None:
    PublicModel.objects.filter(slug=slug).update(refusal_isolation="model")
    bump_revision()


def test_a_later_job_with_refused_content_waits_and_another_content_goes(engine: Engine) -> None:
    first = refused_once(engine, IMAGE)
    again = engine.job(IMAGE, size="2048x2048", metadata={"try": "2"})
    other = engine.job(IMAGE, prompt="a lighthouse in the sun")
    engine.finish(other)
    assert other.state == "succeeded"
    assert engine.reload(again).state == "queued"
    assert again.content_fingerprint == first.content_fingerprint != other.content_fingerprint
    assert reasons(again) == {"refusal_cooldown"}
    assert len(engine.posts()) == 2
    told = Alert.objects.get(code="refusal_first")
    refused = Attempt.objects.select_related("supply").get(job=first)
    assert (told.details["attempt"], told.details["supply"]) == (refused.public_id, refused.supply.slug)


def test_another_model_family_may_take_what_one_refused(engine: Engine) -> None:
    Supply.objects.filter(slug="singapore-seedream-4-0").update(model_family="seedream-4-abroad")
    bump_revision()
    first = refused_once(engine, IMAGE)
    refuser = Attempt.objects.get(job=first).supply_id
    again = engine.job(IMAGE)
    engine.finish(again)
    assert again.state == "succeeded"
    assert Attempt.objects.get(job=again).supply_id != refuser


def test_after_a_quarter_of_an_hour_exactly_one_of_two_jobs_probes(engine: Engine) -> None:
    refused_once(engine, VIDEO)
    refused_at = RefusalRecord.objects.get().refused_at
    assert refused_at is not None
    wait_until(engine, refused_at + timedelta(minutes=10))
    jobs = [engine.job(VIDEO), engine.job(VIDEO)]
    wait_until(engine, refused_at + timedelta(minutes=15) - timedelta(seconds=1))
    assert len(engine.posts()) == 1
    wait_until(engine, refused_at + timedelta(minutes=15))
    assert sorted(len(engine.attempts(job)) for job in jobs) == [0, 1]
    probe = Attempt.objects.get(job__in=jobs)
    assert RefusalRecord.objects.get().probe == probe.public_id
    assert "refusal_probe" in probe.selection_round.snapshot["decision"]["flags"]
    engine.finish(*jobs)
    assert {job.state for job in jobs} == {"succeeded"}, "a generated probe clears the record"
    ended = RefusalRecord.objects.get()
    assert (ended.refusals, ended.ended_by) == (1, probe.public_id)


def test_a_job_that_waits_for_its_own_content_asks_its_customers_limit_too(engine: Engine) -> None:
    first = refused_once(engine, IMAGE)
    again = engine.job(IMAGE)
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "times": 1, "do": {"run_s": 1000}}]})
    running = engine.job(VIDEO)
    engine.step()
    Customer.objects.filter(pk=first.customer_id).update(max_in_flight=1)
    wait_until(engine, NOW + timedelta(minutes=16))
    assert engine.reload(again).waiting == {"outcome": "tenant_limit"}
    waiting = waiting_of(again, engine.now)
    assert waiting is not None and waiting.code == Code.TENANT_LIMIT  # noqa: PT018
    assert not again.attempts.exists()
    engine.finish(running)
    engine.finish(again)
    assert (running.state, again.state) == ("succeeded", "succeeded")


def test_a_probe_that_is_refused_again_starts_the_longer_wait_from_that_moment(engine: Engine) -> None:
    refused_once(engine, IMAGE)
    refuse(engine)
    wait_until(engine, NOW + timedelta(minutes=16))
    probe = engine.job(IMAGE)
    engine.finish(probe)
    waiting = engine.job(IMAGE)
    engine.step(1100)
    assert (len(engine.posts()), engine.attempts(waiting)) == (2, [])
    record = RefusalRecord.objects.get()
    assert (record.refusals, record.probe) == (2, "")
    assert record.last_refused_attempt == Attempt.objects.get(job=probe).public_id


def test_an_uncertain_probe_keeps_its_claim_until_it_is_settled(engine: Engine) -> None:
    refused_once(engine, VIDEO)
    engine.simulator.script(
        {"rules": [{"when": {"call": "submit"}, "times": 1, "do": {"answer": "drop_before_response"}}]}
    )
    wait_until(engine, NOW + timedelta(minutes=16))
    probe, waiting = engine.job(VIDEO), engine.job(VIDEO)
    engine.step(2)
    assert engine.attempts(probe) == [AttemptState.SUBMISSION_UNCERTAIN]
    assert RefusalRecord.objects.get().probe == Attempt.objects.get(job=probe).public_id
    engine.step(30)
    assert engine.attempts(waiting) == []
    engine.finish(probe, waiting, within_s=400)
    assert (probe.state, waiting.state) == ("succeeded", "succeeded")
    assert RefusalRecord.objects.get().refusals == 1


def test_asked_for_three_days_the_provider_refuses_four_times(engine: Engine) -> None:
    refuse(engine)
    seen = []
    for hour in range(0, 72, 3):
        wait_until(engine, NOW + timedelta(hours=hour, seconds=1))
        engine.job(IMAGE)
        engine.drain()
        seen.append(len(engine.posts()))
    assert seen[-1] == 4
    assert seen[4:] == [4] * len(seen[4:])
    record = RefusalRecord.objects.get()
    assert (record.refusals, record.frozen_at is not None) == (4, True)
    heard = Alert.objects.filter(code__startswith="refusal_").order_by("pk").values_list("code", "severity")
    assert list(heard) == [("refusal_first", "warning"), ("refusal_frozen", "critical")]
    assert reasons(Job.objects.latest("pk")) == {"refusal_frozen"}


def test_a_new_version_of_the_supply_is_a_boundary(engine: Engine) -> None:
    refused_once(engine, IMAGE)
    Supply.objects.filter(slug="beijing-seedream-4-0").update(model_version="260901")
    bump_revision()
    again = engine.job(IMAGE)
    engine.finish(again)
    assert again.state == "succeeded"
    assert Attempt.objects.get(job=again).supply.slug == "beijing-seedream-4-0"


def test_fifty_moderation_refusals_in_every_dress_change_no_health(engine: Engine) -> None:
    for status in (400, 403, 500, 200):
        refuse(engine, times=13, status=status)
    jobs = [engine.job(IMAGE, prompt=f"lighthouse {number}") for number in range(50)]
    engine.finish(*jobs)
    assert {(job.state, job.error_code) for job in jobs} == {("failed", "content_refused")}
    assert len(engine.posts()) == 50
    assert not HealthEvent.objects.exists()
    for rows in (ChannelHealth, SupplyHealth):
        assert not rows.objects.exclude(state="healthy").exists()
    assert {alert.code for alert in Alert.objects.all()} == {"refusal_first"}


def test_a_model_that_closes_on_a_refusal_answers_for_its_providers(engine: Engine) -> None:
    close_on_refusal("seedream-4.0")
    Supply.objects.filter(slug="singapore-seedream-4-0").update(model_family="seedream-4-abroad")
    bump_revision()
    refused_once(engine, IMAGE)
    balance = balance_of(engine)
    answer = engine.submit(IMAGE, key="k1", size="2048x2048")
    assert (answer.status_code, answer.json()["code"]) == (422, "content_refused")
    assert "It may be submitted again at 2026-11-30T12:15:" in answer.json()["detail"]
    assert answer["Retry-After"].startswith("Mon, 30 Nov 2026 12:15:")
    assert (len(engine.posts()), balance_of(engine)) == (1, balance)
    wait_until(engine, NOW + timedelta(minutes=16))
    assert engine.submit(IMAGE, key="k1", prompt="another").status_code == 201, "a refusal binds no key"
    probe = engine.job(IMAGE)
    engine.finish(probe)
    assert Attempt.objects.get(job=probe).supply.slug == "beijing-seedream-4-0", "only the refuser is probed"
    assert engine.submit(IMAGE).status_code == 201


def balance_of(engine: Engine) -> int:
    engine.customer.refresh_from_db()
    return engine.customer.balance_micros
