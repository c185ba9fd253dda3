"""What turns up after an attempt was given up is kept under the attempt and costed; the job stays ended."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from billing.models import ProviderUsageEntry
from catalog.providers.types import Found
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, ProviderEvent
from dispatch.services import recover, submit
from health.models import Alert
from tests.engine import Engine

A = AttemptState


@pytest.fixture
def unlisted(engine: Engine) -> Engine:
    """Nothing can be found by a listing: what is known of a task came another way."""
    engine.simulator.script({"rules": [{"when": {"call": "list"}, "do": {"answer": "not_json"}}]})
    return engine


def spent(engine: Engine) -> int:
    return sum(ProviderUsageEntry.objects.values_list("amount_micros", flat=True))


def given_up_meanwhile(engine: Engine, monkeypatch: pytest.MonkeyPatch, fails: bool) -> Attempt:
    """Its answer is read when its uncertain deadline is long past."""
    posting = submit._posting

    def posting_for_long(*given: Any) -> Any:
        post = posting(*given)

        def posted(ask: Callable[[], None]) -> Any:
            outcome = post(ask)
            engine.run(2_400, step_s=120)
            return outcome

        return posted

    monkeypatch.setattr(submit, "_posting", posting_for_long)
    if fails:
        rule = {"when": {"call": "submit"}, "do": {"fail": "InternalServiceError"}}
        engine.simulator.script({"rules": [{"when": {"call": "list"}, "do": {"answer": "not_json"}}, rule]})
    job = engine.job()
    engine.drain()
    assert (engine.attempts(job), engine.reload(job).state) == ([A.ABANDONED], "failed")
    return Attempt.objects.get(job=job)


@pytest.mark.parametrize("fails", [False, True])
def test_an_acceptance_that_is_told_after_giving_up_is_kept_and_costed_as_it_ended(
    unlisted: Engine, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    attempt = given_up_meanwhile(unlisted, monkeypatch, fails)
    accepted = ProviderEvent.objects.get(attempt=attempt, kind="submit", outcome="accepted")
    assert attempt.recovery["found_late"] == accepted.raw["provider_job_id"]
    assert Alert.objects.filter(code="unmatched_charge").count() == 1
    unlisted.step(5)
    attempt.refresh_from_db()
    assert attempt.next_look_at is None, "it was asked for, and has ended"
    assert spent(unlisted) == attempt.cost_micros == (0 if fails else attempt.quote_micros)
    end = "late_failed" if fails else "late_succeeded"
    assert ProviderEvent.objects.filter(attempt=attempt, outcome=end).count() == 1
    assert (attempt.state, unlisted.reload(attempt.job).state) == (A.ABANDONED, "failed")


def test_what_a_look_up_finds_while_the_attempt_is_given_up_is_kept_too(
    unlisted: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline passed, or an operator gave it up, between the question and its answer."""
    script = {"rules": [{"when": {"call": "submit"}, "do": {"answer": "drop_after_acceptance"}}]}
    unlisted.simulator.script(script)
    job = unlisted.job()
    unlisted.drain()
    attempt = Attempt.objects.select_related("channel", "supply", "job", "policy").get(job=job)
    (task,) = unlisted.simulator.world._tasks
    seen_before = Attempt.objects.select_related("channel", "supply", "job", "policy").get(job=job)
    recover.abandon(attempt, unlisted.now)
    recover.record_recovery(seen_before, Found(task, "running"), unlisted.now)
    attempt.refresh_from_db()
    assert (attempt.state, attempt.recovery["found_late"]) == (A.ABANDONED, task)
    assert attempt.next_look_at == unlisted.now
    assert Alert.objects.filter(code="unmatched_charge").count() == 1
    unlisted.now += timedelta(minutes=1)
    unlisted.step()
    assert Attempt.objects.get(pk=attempt.pk).next_look_at is None
