"""Channels that share one real limit pause together, and are probed by one attempt."""

import pytest

from catalog.models import CapacityGroup, Channel
from catalog.revision import bump_revision
from dispatch.models import SelectionRound
from health.models import GroupPressure
from tests.engine import IMAGE, VIDEO, Engine


@pytest.fixture
def shared(engine: Engine) -> Engine:
    """Both accounts of the demo are declared to be one."""
    group = CapacityGroup.objects.create(endpoint="https://ark.example:443", account="shared", capacity=13)
    Channel.objects.update(capacity_group=group)
    bump_revision()
    return engine


def fill_both_channels(engine: Engine, **wishes: object) -> None:
    rule = {"when": {"call": "submit"}, "times": 2, "do": {"error": "ServerOverloaded", **wishes}}
    engine.simulator.script({"rules": [rule]})
    job = engine.job(IMAGE)
    engine.finish(job)
    assert engine.attempts(job) == ["failed", "failed"]


def test_two_full_channels_pause_their_group_for_every_model(shared: Engine) -> None:
    fill_both_channels(shared)
    jobs = [shared.job(VIDEO), shared.job(VIDEO)]
    shared.step(29)
    assert [shared.attempts(job) for job in jobs] == [[], []]
    latest = SelectionRound.objects.filter(job=jobs[0]).latest("number")
    assert {each["reason"] for each in latest.snapshot["decision"]["candidates"].values()} == {
        "not_before",
        "layer_not_reached",
    }


def test_after_the_pause_one_attempt_probes_and_the_others_wait_for_it(shared: Engine) -> None:
    fill_both_channels(shared)
    jobs = [shared.job(VIDEO), shared.job(VIDEO), shared.job(VIDEO)]
    shared.step(30)
    assert sorted(len(shared.attempts(job)) for job in jobs) == [0, 0, 1]
    assert GroupPressure.objects.get().probing
    shared.step(29)
    assert sorted(len(shared.attempts(job)) for job in jobs) == [0, 0, 1]
    shared.step(1)
    assert [len(shared.attempts(job)) for job in jobs] == [1, 1, 1], "the probe went well"
    shared.finish(*jobs)
    assert {job.state for job in jobs} == {"succeeded"}


def test_a_probe_that_is_refused_pauses_the_group_anew(shared: Engine) -> None:
    fill_both_channels(shared)
    rule = {"when": {"call": "submit"}, "times": 1, "do": {"error": "ServerOverloaded", "retry_after": "100"}}
    shared.simulator.script({"rules": [rule]})
    jobs = [shared.job(VIDEO), shared.job(VIDEO)]
    shared.step(30)
    assert sorted(len(shared.attempts(job)) for job in jobs) == [0, 1]
    shared.step(99)
    assert sorted(len(shared.attempts(job)) for job in jobs) == [0, 1]
    shared.step(1)
    assert sum(len(shared.attempts(job)) for job in jobs) == 2
    shared.finish(*jobs)
    assert {job.state for job in jobs} == {"succeeded"}


def test_channels_that_share_nothing_go_on(engine: Engine) -> None:
    fill_both_channels(engine)
    job = engine.job(VIDEO)
    engine.drain()
    assert len(engine.attempts(job)) == 1
