"""An operator's three decisions about a submission whose outcome nobody knows."""

import psycopg
import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from catalog.audit import Actor
from catalog.models import AuditEntry
from dispatch.errors import (
    AlreadyDecided,
    DecisionNeedsEvidence,
    NotAtProvider,
    SenderNotEnded,
    TakenByAnother,
)
from dispatch.models import Attempt, CapacityLease, Job
from dispatch.sending import _SPACE
from dispatch.services.decide_submission import (
    cannot_be_found_out,
    provider_does_not_have_it,
    provider_has_it,
)
from dispatch.services.take_attempt import take_attempt
from health.models import Alert
from tests.engine import Engine

LI = Actor("li.m", "console")
WANG = Actor("wang.l", "console")


def uncertain(engine: Engine, answer: str) -> Attempt:
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "times": 1, "do": {"answer": answer}}]})
    job = engine.job()
    engine.drain()
    return Attempt.objects.get(job=job, state="submission_uncertain")


def at_provider(engine: Engine) -> str:
    return engine.simulator.world.log()["posts"][-1]["task_id"]


def test_what_the_provider_confirms_is_followed_to_its_end_and_paid_once(engine: Engine) -> None:
    attempt = uncertain(engine, "drop_after_acceptance")
    provider_has_it(attempt.pk, f" {at_provider(engine)} ", LI, lambda: engine.now)
    attempt.refresh_from_db()
    assert (attempt.state, attempt.provider_job.provider_job_id) == ("accepted", at_provider(engine))
    assert CapacityLease.objects.get(attempt=attempt).state == "live"
    engine.finish(attempt.job)
    assert attempt.job.state == "succeeded"
    assert len(engine.simulator.world.log()["posts"]) == 1
    assert Alert.objects.get(code="submission_uncertain").resolved_why == "li.m: the provider has it"
    entry = AuditEntry.objects.get(action="decide submission")
    assert (entry.actor, entry.after["decision"]) == ("li.m", "exists")


def test_an_id_that_the_provider_does_not_know_is_not_believed(engine: Engine) -> None:
    attempt = uncertain(engine, "drop_before_response")
    with pytest.raises(NotAtProvider):
        provider_has_it(attempt.pk, "cgt-20261130-invented", LI, lambda: engine.now)
    attempt.refresh_from_db()
    assert attempt.state == "submission_uncertain"
    assert not AuditEntry.objects.filter(action="decide submission").exists()


def test_an_id_of_another_attempt_is_refused_by_that_attempts_name(engine: Engine) -> None:
    other = engine.job()
    engine.drain()
    first = Attempt.objects.get(job=other)
    attempt = uncertain(engine, "drop_after_acceptance")
    with pytest.raises(DecisionNeedsEvidence, match=first.public_id):
        provider_has_it(attempt.pk, first.provider_job.provider_job_id, LI, lambda: engine.now)


def test_what_does_not_exist_frees_its_slot_and_the_one_switch_follows(engine: Engine) -> None:
    attempt = uncertain(engine, "drop_before_response")
    with pytest.raises(DecisionNeedsEvidence):
        provider_does_not_have_it(attempt.pk, "  ", LI, engine.now)
    provider_does_not_have_it(attempt.pk, "not in their console at 10:02", LI, engine.now)
    attempt.refresh_from_db()
    assert (attempt.state, attempt.error_code, attempt.cost_micros) == ("failed", "not_created", None)
    assert CapacityLease.objects.get(attempt=attempt).released_at == engine.now
    engine.finish(attempt.job)
    assert engine.attempts(attempt.job) == ["failed", "succeeded"]


def test_while_a_stopped_worker_may_still_send_nobody_decides_that_the_provider_does_not_have_it(
    engine: Engine,
) -> None:
    """A second attempt beside what that worker sends when it goes on would be paid twice."""
    attempt = uncertain(engine, "drop_before_response")
    parameters = connection.get_connection_params()
    wanted = ("host", "port", "user", "dbname", "password")
    with psycopg.connect(**{name: parameters[name] for name in wanted if name in parameters}) as stopped:
        stopped.execute("SELECT pg_advisory_lock(%s, %s)", [_SPACE, attempt.pk])
        with pytest.raises(SenderNotEnded):
            provider_does_not_have_it(attempt.pk, "not in their console at 10:02", LI, engine.now)
        attempt.refresh_from_db()
        assert attempt.state == "submission_uncertain"
        assert CapacityLease.objects.get(attempt=attempt).released_at is None
    provider_does_not_have_it(attempt.pk, "not in their console at 10:09", LI, engine.now)
    attempt.refresh_from_db()
    assert attempt.state == "failed", "the worker has ended, and its lock with it"


def test_a_long_finding_decides_as_a_short_one_does_and_is_kept_whole(engine: Engine) -> None:
    attempt = uncertain(engine, "drop_before_response")
    engine.step(1)
    finding = "not in their console; " * 22
    provider_does_not_have_it(attempt.pk, finding, LI, engine.now)
    attempt.refresh_from_db()
    assert (attempt.state, attempt.error_code) == ("failed", "not_created")
    assert AuditEntry.objects.get(action="decide submission").after["note"] == finding
    told = Alert.objects.exclude(resolved_why="").values_list("resolved_why", flat=True)
    assert [why for why in told if "not in their console" in why]


def test_what_cannot_be_found_out_ends_the_job_and_keeps_the_slot_in_quarantine(engine: Engine) -> None:
    attempt = uncertain(engine, "drop_before_response")
    cannot_be_found_out(attempt.pk, "their support does not answer", LI, engine.now)
    attempt.refresh_from_db()
    job = Job.objects.get(pk=attempt.job_id)
    assert (attempt.state, job.state, job.error_code) == ("abandoned", "failed", "submission_unknown")
    assert (job.charged_micros, attempt.cost_micros) == (0, attempt.quote_micros)
    lease = CapacityLease.objects.get(attempt=attempt)
    assert lease.released_at is None
    assert lease.quarantine_until > engine.now


def test_a_decision_that_comes_after_the_answer_changes_nothing(engine: Engine) -> None:
    attempt = uncertain(engine, "drop_after_acceptance")
    engine.finish(attempt.job)
    with pytest.raises(AlreadyDecided):
        provider_does_not_have_it(attempt.pk, "not there", LI, engine.now)
    with pytest.raises(AlreadyDecided):
        provider_has_it(attempt.pk, at_provider(engine), LI, lambda: engine.now)


def test_a_second_operator_must_take_the_attempt_over_before_deciding(engine: Engine) -> None:
    attempt = uncertain(engine, "drop_before_response")
    take_attempt(attempt, LI, engine.now)
    with pytest.raises(TakenByAnother, match=r"li\.m is on it until"):
        cannot_be_found_out(attempt.pk, "no idea", WANG, engine.now)
    with pytest.raises(TakenByAnother):
        take_attempt(attempt, WANG, engine.now)
    take_attempt(attempt, WANG, engine.now, take_over=True)
    cannot_be_found_out(attempt.pk, "no idea", WANG, engine.now)
    taken = AuditEntry.objects.filter(action="take attempt").order_by("at", "id")
    assert [entry.actor for entry in taken] == ["li.m", "wang.l"]


def test_above_the_limit_giving_up_needs_a_second_person(engine: Engine, settings: Settings) -> None:
    settings.GIVE_UP_ALONE_UP_TO_MICROS = 0
    attempt = uncertain(engine, "drop_before_response")
    take_attempt(attempt, LI, engine.now)
    assert not cannot_be_found_out(attempt.pk, "no answer", LI, engine.now)
    assert not cannot_be_found_out(attempt.pk, "I am sure", LI, engine.now), "twice is one person"
    attempt.refresh_from_db()
    assert attempt.state == "submission_uncertain"
    assert cannot_be_found_out(attempt.pk, "me neither", WANG, engine.now), "and nobody holds it"
    attempt.refresh_from_db()
    assert attempt.state == "abandoned"
    told = AuditEntry.objects.values_list("actor", "after__first").get(action="decide submission")
    assert told == ("wang.l", "li.m")
