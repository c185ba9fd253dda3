"""Failures that users of such systems reported (S…), and faults that a day in production brings: each ends
well here. The simulator's own log says what the provider saw."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from catalog.models import Channel, PublicModel
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease, Job, ProviderJob, SelectionRound
from dispatch.services import dispatch_scan, reconcile, submit
from tests.engine import VIDEO, Engine

A = AttemptState


def script(engine: Engine, call: str, times: int | None = None, **do: Any) -> None:
    rule: dict[str, Any] = {"when": {"call": call}, "do": do}
    engine.simulator.script({"rules": [rule if times is None else {**rule, "times": times}]})


def posts(engine: Engine) -> int:
    return len(engine.simulator.world.log()["posts"])


def balance(engine: Engine) -> int:
    engine.customer.refresh_from_db()
    return engine.customer.balance_micros


def lose_credential(slug: str) -> None:
    """The sealed secret of another row does not open here, as after a lost master key."""
    other = Channel.objects.exclude(slug=slug).exclude(credential="").values_list("credential", flat=True)[0]
    Channel.objects.filter(slug=slug).update(credential=other)


def test_an_answer_that_comes_after_its_lease_ran_out_is_still_believed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S01: the reconciler took the attempt for lost while its worker still read the provider's answer."""
    send = submit._send

    def send_slowly(attempt: Attempt, clock: Any) -> Any:
        outcome = send(attempt, clock)
        engine.step(70)
        return outcome

    monkeypatch.setattr(submit, "_send", send_slowly)
    job = engine.job()
    engine.finish(job)
    assert engine.attempts(job) == [A.SUCCEEDED]
    assert posts(engine) == 1


def test_a_task_found_under_the_id_of_another_job_is_not_adopted_and_the_search_ends(engine: Engine) -> None:
    """Fault 24: one provider job never belongs to two attempts, and the second does not wait for ever."""
    other = engine.job()
    engine.finish(other)
    script(engine, "submit", answer="drop_after_acceptance")
    job = engine.job()
    engine.drain()
    found = list(engine.simulator.world._tasks)[-1]
    ProviderJob.objects.filter(attempt__job=other).update(provider_job_id=found)
    engine.run(2_400, step_s=60)
    assert engine.attempts(job) == [A.ABANDONED]
    assert engine.reload(job).error_code == "submission_unknown"


def test_a_credential_that_does_not_open_stops_only_its_own_polls(engine: Engine) -> None:
    """Fault 54: the channel is unavailable; the jobs of others go on."""
    first = engine.job()
    engine.drain()
    Channel.objects.filter(slug="ark-beijing").update(state="disabled")
    second = engine.job()
    engine.drain()
    lose_credential("ark-beijing")
    engine.finish(second)
    assert second.state == "succeeded"
    engine.run(9_000, step_s=300)
    assert engine.attempts(first) == [A.ABANDONED]


def test_a_credential_that_does_not_open_is_proved_unsent_and_switches_at_once(engine: Engine) -> None:
    lose_credential("ark-beijing")
    job = engine.job()
    engine.finish(job, within_s=30)
    assert engine.attempts(job) == [A.FAILED, A.SUCCEEDED]
    assert Attempt.objects.get(job=job, number=1).error_code == "auth"


def test_a_credential_that_does_not_open_does_not_keep_an_uncertain_submission_for_ever(
    engine: Engine,
) -> None:
    """S15: no job stays open without an end in sight."""
    script(engine, "submit", answer="drop_after_acceptance")
    job = engine.job()
    engine.drain()
    lose_credential("ark-beijing")
    engine.run(2_400, step_s=120)
    assert engine.attempts(job) == [A.ABANDONED]
    assert engine.reload(job).error_code == "submission_unknown"


def test_a_credential_that_does_not_open_does_not_keep_a_lost_output_for_ever(engine: Engine) -> None:
    script(engine, "submit", output="missing")
    job = engine.job()
    while engine.attempts(job) != [A.FETCHING]:
        engine.step(2)
    engine.run(30)
    lose_credential("ark-beijing")
    engine.run(22_000, step_s=1_000)
    assert (engine.reload(job).state, job.error_code) == ("failed", "output_lost")


def test_a_job_that_nobody_else_can_serve_ends_with_the_error_of_its_attempt_at_once(engine: Engine) -> None:
    """S37: nothing is tried twice, nothing is written again every second."""
    script(engine, "submit", error="ServerOverloaded")
    job = engine.job()
    job.public_model.bindings.exclude(tier="exact").delete()
    engine.finish(job, within_s=20)
    assert (job.state, job.error_code) == ("failed", "generation_failed")
    assert SelectionRound.objects.filter(job=job).count() <= 2
    assert balance(engine) == 1_000_000_000


def test_a_key_that_is_revoked_between_two_attempts_ends_the_job_at_once(engine: Engine) -> None:
    """Fault 52."""
    script(engine, "submit", error="ServerOverloaded")
    job = engine.job()
    dispatch_scan.scan(engine.now)
    submit.submit(Attempt.objects.get(job=job).pk, lambda: engine.now)
    engine.key.revoked_at = engine.now
    engine.key.save()
    engine.step()
    assert (engine.reload(job).state, job.error_code) == ("failed", "access_revoked")
    assert posts(engine) == 1
    assert balance(engine) == 1_000_000_000


def test_a_job_that_can_not_be_routed_stops_no_other(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One poisoned row at the head of the queue is set aside; at its deadline it ends like any other."""
    poisoned, healthy = engine.job(), engine.job()
    route = dispatch_scan.inputs_for

    def fails_for_one(job: Job, *given: Any) -> Any:
        if job.pk == poisoned.pk:
            raise ZeroDivisionError
        return route(job, *given)

    monkeypatch.setattr(dispatch_scan, "inputs_for", fails_for_one)
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
    assert balance(engine) == 1_000_000_000 - 2 * cheaper.reserved_micros


def test_a_wish_to_cancel_outlives_the_execution_deadline(engine: Engine) -> None:
    """S18: what the customer asked for and the provider did is cancelled, not failed."""
    script(engine, "submit", run_s=-1)
    script(engine, "status", error="InternalServiceError")
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


def test_a_lease_that_can_not_be_reconciled_stops_no_other(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = engine.job(VIDEO), engine.job(VIDEO)
    dispatch_scan.scan(engine.now)
    poisoned = CapacityLease.objects.get(attempt__job=first)
    look = reconcile._reconcile_lease

    def fails_for_one(lease: CapacityLease, now: Any) -> str:
        if lease.pk == poisoned.pk:
            raise ZeroDivisionError
        return look(lease, now)

    monkeypatch.setattr(reconcile, "_reconcile_lease", fails_for_one)
    engine.now += dispatch_scan.capacity.LEASE_TTL * 2
    reconcile.reconcile(engine.now)
    assert CapacityLease.objects.get(attempt__job=second).expires_at > engine.now
    monkeypatch.undo()
    assert reconcile.reconcile(engine.now)["rung_again"] == 1


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
    assert balance(engine) == 1_000_000_000 - 1_100_000


def _closing(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Threads have a connection of their own, which ends with the work."""

    def closed(given: Any) -> Any:
        try:
            return work(given)
        finally:
            connection.close()

    return closed


def _until_somebody_waits() -> None:
    asked = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
    deadline = time.monotonic() + 20
    with connection.cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute(asked)
            if cursor.fetchone()[0]:
                return
    raise AssertionError("nobody waits for a lock")
