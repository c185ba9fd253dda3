"""A circuit on its way back (S31, S33, S34, S37): one probe, then a quarter, half, three quarters, all.

The provider's own log counts what it was really asked for."""

from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection
from django_q.models import OrmQ

from catalog.audit import Actor
from catalog.models import PublicModel, Supply
from catalog.providers.types import ProviderError
from catalog.revision import bump_revision
from dispatch import live_catalogue, selection_facts
from dispatch.models import Attempt, CapacityLease, Job, SelectionRound
from dispatch.services import dispatch_scan, submit
from dispatch.services.check_accounts import begin_due_recoveries
from health.circuit import Subject
from health.models import ChannelHealth, HealthEvent, SupplyHealth
from health.services import switch
from health.services.record_evidence import AttemptEvidence, record_evidence
from tests.engine import Engine

OPERATOR = Actor("li.m", "console")
MODEL = {"model": "seedance-1.0-pro", "prompt": "a lighthouse in a storm", "duration_s": 5}
ONLY = "beijing-seedance-1-0-pro"
FAILED = ProviderError("supply", "supply", True, "internal_retryable")


def only_supply(slots: int = 10) -> Supply:
    Supply.objects.exclude(slug=ONLY).update(state="disabled")
    Supply.objects.filter(slug=ONLY).update(concurrency=slots)
    supply = Supply.objects.select_related("channel").get(slug=ONLY)
    supply.channel.concurrency = slots
    supply.channel.save()
    bump_revision()
    return supply


def fail(engine: Engine, supply: Supply, times: int) -> None:
    """Attempts of the present epoch that failed at the provider."""
    row = SupplyHealth.objects.filter(pk=supply.pk).first()
    epoch = row.epoch if row else 0
    piece = AttemptEvidence("att_earlier", supply.channel_id, supply.pk, 0, epoch, FAILED)
    record_evidence([piece] * times, engine.now)


def circuit(supply: Supply) -> tuple[str, int, int]:
    row = SupplyHealth.objects.get(pk=supply.pk)
    return row.state, row.recovery_successes, row.epoch


def jobs_of(engine: Engine, number: int) -> list[Job]:
    return [engine.job(MODEL, prompt=f"lighthouse {each}") for each in range(number)]


def long_runs(engine: Engine, **do: Any) -> None:
    usual = {"queue_s": 1, "run_s": 30, **do}
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": usual}]})


def a_probe_ends(engine: Engine) -> None:
    """What is at the provider now is generated; whoever comes next was not there before."""
    at_provider = list(
        Attempt.objects.filter(generated_at=None, finished_at=None).values_list("pk", flat=True)
    )
    while Attempt.objects.filter(pk__in=at_provider, generated_at=None, finished_at=None).exists():
        engine.step(5)


def open_with_jobs_waiting(engine: Engine, supply: Supply, number: int) -> list[Job]:
    """The circuit is open, its cooldown over, and `number` jobs wait."""
    fail(engine, supply, times=5)
    jobs = jobs_of(engine, number)
    engine.step(29)
    assert (circuit(supply)[0], len(engine.posts())) == ("circuit_open", 0)
    return jobs


def forget_everything_in_memory() -> None:
    """As after a restart."""
    live_catalogue._kept.clear()
    selection_facts._kept_statistics.clear()


def test_two_hundred_jobs_at_the_moment_of_half_open_are_one_probe_and_then_a_quarter_half_and_three_quarters(
    engine: Engine,
) -> None:
    supply = only_supply(slots=10)
    long_runs(engine)
    earlier = jobs_of(engine, 3)
    engine.drain()
    assert len(engine.posts()) == 3
    fail(engine, supply, times=5)
    assert circuit(supply) == ("circuit_open", 0, 1)
    jobs_of(engine, 200)
    engine.step(28)
    assert len(engine.posts()) == 3, "open: nothing new is sent"
    engine.step(2)
    assert circuit(supply)[0] == "probing"
    assert len(engine.posts()) == 4, "exactly one probe for two hundred jobs"
    forget_everything_in_memory()
    engine.finish(*earlier)
    assert circuit(supply) == ("probing", 0, 1), "successes from before the opening lead nowhere"
    assert len(engine.posts()) == 4

    in_flight = []
    for successes, state, slots in ((1, "probing", 1), (2, "recovering", 3)):
        a_probe_ends(engine)
        assert circuit(supply) == (state, successes, 1)
        engine.step(1)
        in_flight.append(CapacityLease.objects.filter(released_at=None).count())
        assert in_flight[-1] == slots
    a_probe_ends(engine)
    assert circuit(supply) == ("healthy", 0, 1), "three at once were the third, the fourth and the fifth"
    reached = HealthEvent.objects.filter(subject="supply", subject_id=supply.pk).order_by("pk")
    assert [(event.to_state, event.recovery_successes) for event in reached][-5:] == [
        ("probing", 1),
        ("recovering", 2),
        ("recovering", 3),
        ("recovering", 4),
        ("healthy", 0),
    ]


@pytest.mark.parametrize("claimed", [True, False])
def test_a_probe_whose_worker_dies_ends_with_its_lease_and_another_follows(
    engine: Engine, claimed: bool
) -> None:
    """Fault 44."""
    supply = only_supply()
    jobs = open_with_jobs_waiting(engine, supply, 3)
    engine.now += timedelta(seconds=1)
    begin_due_recoveries(engine.now)
    dispatch_scan.scan(lambda: engine.now)
    probe = Attempt.objects.get()
    if claimed:
        submit._claim([probe.pk], engine.now)
    OrmQ.objects.all().delete()  # nobody will answer the bell
    engine.run(50)
    assert (Attempt.objects.count(), len(engine.posts())) == (1, 0), "nobody else probes meanwhile"
    engine.run(150, step_s=10)
    # Nothing was sent by the one who died with its claim, and there is no other supply to switch to.
    engine.finish(*(job for job in jobs if not claimed or job.pk != probe.job_id), within_s=300)
    assert engine.attempts(probe.job) == (["failed"] if claimed else ["succeeded"])
    assert circuit(supply)[2] == (2 if claimed else 1)
    assert max(engine.accepted().values()) == 1


def test_of_eight_scans_at_once_one_takes_the_one_permit(engine: Engine) -> None:
    """Fault 45."""
    supply = only_supply()
    open_with_jobs_waiting(engine, supply, 8)
    engine.now += timedelta(seconds=1)
    begin_due_recoveries(engine.now)
    started, together = [], Barrier(8)

    def look() -> None:
        try:
            together.wait()
            started.append(dispatch_scan.scan(lambda: engine.now))
        finally:
            connection.close()

    threads = [Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(started) == [0] * 7 + [1]
    assert Attempt.objects.count() == 1


def test_one_failure_on_the_way_back_reopens_and_what_was_in_flight_beside_it_means_nothing(
    engine: Engine,
) -> None:
    supply = only_supply(slots=10)
    long_runs(engine)
    open_with_jobs_waiting(engine, supply, 8)
    while not Attempt.objects.exists():
        engine.step(1)
    for _ in range(2):
        a_probe_ends(engine)
        engine.step(1)
    assert circuit(supply)[:2] == ("recovering", 2)
    beside = Attempt.objects.filter(generated_at=None, finished_at=None)
    assert beside.count() == 3
    fail(engine, supply, times=1)
    assert circuit(supply) == ("circuit_open", 0, 2)
    opened = HealthEvent.objects.filter(subject="supply").latest("pk")
    assert (opened.cause, opened.cooldown_until) == ("recovery_failed", engine.now + timedelta(seconds=60))
    sent = len(engine.posts())
    a_probe_ends(engine)
    assert circuit(supply) == ("circuit_open", 0, 2), "they were created under an older epoch"
    assert len(engine.posts()) == sent


def test_a_refused_account_is_asked_for_free_until_it_passes_and_then_one_real_job_probes(
    engine: Engine,
) -> None:
    """S33."""
    only_supply()
    engine.simulator.script({"accounts": {"beijing-account-key": {"state": "revoked"}}})
    engine.job(MODEL)
    engine.drain()
    waiting = jobs_of(engine, 2)
    engine.run(300, step_s=10)
    channel = ChannelHealth.objects.get(channel__slug="ark-beijing")
    assert channel.state == "circuit_open"
    assert Attempt.objects.count() == 1, "no attempt is spent on a key known to be bad"
    long_runs(engine)
    engine.simulator.script({"accounts": {"beijing-account-key": {"state": "ok"}}})
    engine.run(40, step_s=2)
    channel.refresh_from_db()
    assert (channel.state, Attempt.objects.count(), len(engine.posts())) == ("probing", 2, 1)
    engine.finish(*waiting)
    assert {job.state for job in waiting} == {"succeeded"}


def test_what_an_operator_paused_stays_so_until_an_operator_says_otherwise(engine: Engine) -> None:
    """S33: the off switch is off, whatever passes meanwhile."""
    supply = only_supply()
    switch.disable(Subject.SUPPLY, supply.pk, OPERATOR, "maintenance", engine.now)
    jobs = jobs_of(engine, 2)
    engine.run(1_000, step_s=50)
    assert (circuit(supply)[0], len(engine.posts())) == ("disabled", 0)
    switch.enable(Subject.SUPPLY, supply.pk, OPERATOR, "done", engine.now)
    engine.step(1)
    assert (circuit(supply)[0], len(engine.posts())) == ("probing", 1)
    engine.finish(*jobs)
    assert {job.state for job in jobs} == {"succeeded"}


def test_each_candidate_is_tried_once_at_most_and_two_of_them_in_all(engine: Engine) -> None:
    """S37, with a third candidate that is never asked."""
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": {"error": "ModelNotOpen"}}]})
    PublicModel.objects.update(degradation="best_effort")
    job = engine.job()
    engine.finish(job)
    assert engine.attempts(job) == ["failed", "failed"]
    assert len(engine.posts()) == 2
    assert len(set(job.attempts.values_list("supply", flat=True))) == 2
    for decided in SelectionRound.objects.filter(job=job):
        order = decided.snapshot["decision"]["order"]
        assert len(set(order)) == len(order)


def test_a_channel_that_is_disabled_in_flight_finishes_what_it_has_and_gets_nothing_new(
    engine: Engine,
) -> None:
    """S37: both an attempt at the provider and one that was not sent yet."""
    long_runs(engine)
    running = engine.job()
    engine.drain()
    beijing = Attempt.objects.get(job=running).channel
    unsent = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    assert Attempt.objects.get(job=unsent).channel == beijing
    beijing.state = "disabled"
    beijing.save()
    bump_revision()
    later = engine.job()
    engine.finish(running, unsent, later)
    assert {job.state for job in (running, unsent, later)} == {"succeeded"}
    assert engine.attempts(running) == ["succeeded"]
    assert engine.attempts(unsent) == ["failed", "succeeded"]
    assert Attempt.objects.filter(channel=beijing, accepted_at__isnull=False).count() == 1
    assert len(engine.posts()) == 3
