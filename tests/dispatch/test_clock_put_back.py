"""The clock is put back by an hour while jobs are at work."""

from datetime import timedelta

import pytest
from django_q.models import OrmQ

from catalog.models import AuditEntry
from dispatch import pulse
from dispatch.lifecycle import FINAL_JOB_STATES
from dispatch.models import Attempt, Bell, CapacityLease, Job
from dispatch.services.dispatch_scan import scan
from tests.engine import Engine

HOUR = timedelta(hours=1)


def put_back(engine: Engine) -> None:
    """Ours only: the provider's goes on."""
    engine.now -= HOUR
    engine.simulator.world.advance(HOUR.total_seconds())


def test_work_goes_on_at_once_and_every_job_ends_as_it_would_have(engine: Engine) -> None:
    engine.simulator.script(
        {
            "rules": [
                {"when": {"call": "submit"}, "times": 1, "do": {"answer": "drop_after_acceptance"}},
                {"when": {"call": "submit"}, "times": 1, "do": {"run_s": 20}},
            ]
        }
    )
    uncertain, running = engine.job(), engine.job(prompt="another")
    engine.drain()
    ready = engine.job(prompt="a third")
    scan(lambda: engine.now)
    OrmQ.objects.all().delete()  # its task is lost: the end of its lease brings another
    engine.step(2)
    deadline = Job.objects.get(pk=running.pk).dispatch_deadline_at
    put_back(engine)
    engine.step(1)
    assert Bell.objects.get(name="scan").answered_at == engine.now, "the dispatcher scans within a second"
    assert Job.objects.get(pk=running.pk).dispatch_deadline_at < deadline
    engine.finish(uncertain, running, ready)
    jobs = Job.objects.filter(state__in=FINAL_JOB_STATES)
    assert set(jobs.values_list("state", flat=True)) == {"succeeded"}
    assert set(engine.accepted().values()) == {1}
    [entry] = AuditEntry.objects.filter(action="follow clock")
    assert 3590 < entry.after["put_back_s"] <= 3600


@pytest.mark.parametrize("after_s", [20, 110], ids=["before the first reading", "after the first reading"])
def test_a_submission_that_reached_nobody_is_proved_absent_as_soon_as_ever(
    engine: Engine, after_s: int
) -> None:
    lost = {"when": {"call": "submit"}, "times": 1, "do": {"answer": "drop_before_response"}}
    engine.simulator.script({"rules": [lost]})
    job = engine.job()
    engine.run(after_s)
    uncertain = Attempt.objects.get(job=job)
    assert (uncertain.state, "absent_at" in uncertain.recovery) == ("submission_uncertain", after_s > 100)
    put_back(engine)
    began = engine.now
    while Attempt.objects.get(pk=uncertain.pk).state == "submission_uncertain":
        engine.step(1)
        assert engine.now - began < timedelta(minutes=5)
    assert Attempt.objects.get(pk=uncertain.pk).error_code == "not_created"
    engine.finish(job)


def test_a_job_without_our_reference_may_be_ours_whenever_it_was_made(engine: Engine) -> None:
    taken = {"without_reference": True, "answer": "drop_after_acceptance"}
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "times": 1, "do": taken}]})
    engine.now += HOUR  # of our clock, not of time
    engine.simulator.world.advance(-HOUR.total_seconds())
    job = engine.job()
    engine.run(20)
    put_back(engine)
    engine.run(300)
    assert Attempt.objects.get(job=job).state == "submission_uncertain"
    assert list(engine.accepted().values()) == [1]


def test_what_lies_ahead_is_brought_forward_and_what_is_past_stays(engine: Engine) -> None:
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": {"run_s": 60}}]})
    job = engine.job()
    engine.step(1)
    attempt = Attempt.objects.get(job=job)
    lease = CapacityLease.objects.get(attempt=attempt)
    put_back(engine)
    pulse.beat(engine.now)
    moved = Attempt.objects.get(pk=attempt.pk)
    assert attempt.next_look_at - moved.next_look_at == HOUR
    assert attempt.execution_deadline_at - moved.execution_deadline_at == HOUR
    assert lease.expires_at - CapacityLease.objects.get(pk=lease.pk).expires_at == HOUR
    assert moved.created_at == attempt.created_at
    engine.finish(job)


def test_another_hosts_clock_that_is_a_minute_ahead_moves_nothing_and_stops_nothing(engine: Engine) -> None:
    engine.step(1)
    engine.now -= timedelta(seconds=60)
    job = engine.job()
    assert "scan" in pulse.beat(engine.now)
    assert not AuditEntry.objects.filter(action="follow clock").exists()
    engine.finish(job)
