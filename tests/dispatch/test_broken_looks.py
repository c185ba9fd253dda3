"""Jobs that break their own looks are set aside together: they cost one pass more, however many they are."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, Job
from dispatch.services import dispatch_scan, look_at_job, look_at_lots
from tests.engine import Engine
from tests.invariants import assert_invariants

A = AttemptState


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each part of a scan was begun."""
    begun: Counter[str] = Counter()

    def counting(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            begun[name] += 1
            return work(*given)

        return counted

    for name in ("serve_queue", "look_at_due"):
        monkeypatch.setattr(dispatch_scan, name, counting(name, getattr(dispatch_scan, name)))
    return begun


def poison(monkeypatch: pytest.MonkeyPatch, jobs: Iterable[Job]) -> None:
    broken, inputs_for = {job.pk for job in jobs}, look_at_job.inputs_for

    def fails_for_some(job: Job, *given: Any) -> Any:
        if job.pk in broken:
            raise ZeroDivisionError
        return inputs_for(job, *given)

    for module in (look_at_job, look_at_lots):
        monkeypatch.setattr(module, "inputs_for", fails_for_some)


def started() -> set[int]:
    return set(Attempt.objects.values_list("job", flat=True))


def test_many_that_break_among_others_cost_one_pass_more_in_the_queue_and_one_when_they_are_due_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, passes: Counter[str], caplog: pytest.LogCaptureFixture
) -> None:
    poisoned, healthy = [engine.job() for _ in range(6)], [engine.job() for _ in range(3)]
    poison(monkeypatch, poisoned)
    assert dispatch_scan.scan(lambda: engine.now) == 3
    assert started() == {job.pk for job in healthy}
    assert passes == {"look_at_due": 2, "serve_queue": 2}
    told = [record for record in caplog.records if record.message == "A job was set aside"]
    assert {getattr(record, "job", "") for record in told} == {job.public_id for job in poisoned}
    assert all(record.exc_info for record in told)
    assert_invariants()

    passes.clear()
    engine.now += dispatch_scan.SET_ASIDE + timedelta(seconds=1)
    late = engine.job()
    assert dispatch_scan.scan(lambda: engine.now) == 1
    assert passes == {"look_at_due": 2, "serve_queue": 1}
    assert late.pk in started()
    due = Job.objects.filter(pk__in=[job.pk for job in poisoned]).values_list("next_action_at", flat=True)
    assert set(due) == {engine.now + dispatch_scan.SET_ASIDE}
    monkeypatch.undo()


def test_what_broke_for_a_while_begins_when_it_breaks_no_more(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        jobs = [engine.job() for _ in range(2)]
        poison(patched, jobs)
        assert dispatch_scan.scan(lambda: engine.now) == 0
    engine.finish(*jobs)
    assert [engine.attempts(job) for job in jobs] == [[A.SUCCEEDED]] * 2
