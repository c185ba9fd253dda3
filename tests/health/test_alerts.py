"""One alert for each condition, from when it begins until it ends."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from health.alerts import (
    SEVERITIES,
    acknowledge,
    raise_alert,
    reraise_acknowledged,
    resolve_alert,
    resolve_alerts,
)
from health.models import Alert
from tests.factories import NOW, AlertFactory

pytestmark = pytest.mark.django_db
LATER_BY = timedelta(minutes=5)
LATER = NOW + LATER_BY


def lost(number: int = 1, **values: Any) -> Alert:
    given: dict[str, Any] = {"details": {"job": f"job_{number}"}, "now": NOW} | values
    return raise_alert("output_lost", subject="attempt:att_1", dedupe_key=f"output_lost:{number}", **given)


def test_five_hundred_failures_are_one_alert_with_a_count() -> None:
    for _ in range(500):
        lost()
    alert = Alert.objects.get()
    assert (alert.count, alert.severity) == (500, "critical")


def test_a_condition_that_persists_says_what_was_seen_last_and_when() -> None:
    lost()
    alert = lost(now=LATER, details={"job": "job_9"})
    assert (alert.opened_at, alert.last_seen_at, alert.details) == (NOW, LATER, {"job": "job_9"})


def test_a_look_that_arrives_late_does_not_turn_the_clock_back() -> None:
    lost(now=LATER)
    assert lost(now=NOW).last_seen_at == LATER


def test_a_condition_that_returns_opens_a_new_alert() -> None:
    first = lost()
    assert resolve_alert("output_lost:1", "found again", LATER)
    second = lost(now=LATER)
    first.refresh_from_db()
    assert (first.resolved_at, first.resolved_why) == (LATER, "found again")
    assert (second.pk != first.pk, second.count, second.resolved_at) == (True, 1, None)


def test_resolving_what_is_not_open_is_a_normal_answer() -> None:
    assert not resolve_alert("output_lost:1", "found", NOW)


def test_several_conditions_end_together() -> None:
    lost(1), lost(2), lost(3)
    assert resolve_alerts(["output_lost:1", "output_lost:3", "never:raised"], "found", NOW) == 2
    assert Alert.objects.unresolved().get().dedupe_key == "output_lost:2"


def test_acknowledging_never_resolves_and_the_first_name_stays() -> None:
    alert = lost()
    assert acknowledge(alert.pk, "li.m", "looking", NOW)
    assert not acknowledge(alert.pk, "wang.l", "me too", LATER)
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.acknowledged_at, alert.note) == ("li.m", NOW, "looking")
    assert alert.resolved_at is None


def test_an_acknowledgement_after_the_end_is_kept_and_the_end_stays() -> None:
    alert = lost()
    resolve_alert(alert.dedupe_key, "found", NOW)
    assert acknowledge(alert.pk, "li.m", "", LATER)
    alert.refresh_from_db()
    assert alert.resolved_at == NOW


def test_the_header_shows_critical_ones_until_somebody_acknowledges_them() -> None:
    waiting, ended = lost(1), lost(2)
    acknowledge(lost(3).pk, "li.m", "", NOW)
    resolve_alert(ended.dedupe_key, "found", NOW)
    raise_alert("stuck_attempt", subject="attempt:att_1", dedupe_key="stuck", details={}, now=NOW)
    assert set(Alert.objects.needing_acknowledgement()) == {waiting, ended}


HALF_AN_HOUR = timedelta(minutes=30)


def test_a9_what_still_fires_after_the_time_is_raised_again_and_keeps_the_first_acknowledgement() -> None:
    alert = lost()
    acknowledge(alert.pk, "li.m", "restarting it", NOW)
    lost(now=LATER)
    assert reraise_acknowledged(NOW - timedelta(seconds=1), LATER) == 0  # too early
    assert reraise_acknowledged(NOW, NOW + HALF_AN_HOUR) == 1
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.acknowledged_by, alert.note) == (None, "", "")
    assert (alert.first_acknowledged_at, alert.first_acknowledged_by) == (NOW, "li.m")
    assert (alert.first_note, alert.reraises) == ("restarting it", 1)
    assert Alert.objects.needing_acknowledgement().get() == alert

    again_at = NOW + HALF_AN_HOUR
    assert acknowledge(alert.pk, "wang.l", "mine now", again_at)
    lost(now=again_at + LATER_BY)
    assert reraise_acknowledged(again_at, again_at + HALF_AN_HOUR) == 1
    alert.refresh_from_db()
    assert (alert.first_acknowledged_by, alert.reraises) == ("li.m", 2)
    assert alert.reraised_at == again_at + HALF_AN_HOUR


def test_what_ended_what_was_not_seen_since_and_what_only_warns_is_not_raised_again() -> None:
    ended, once = lost(1), lost(2)
    warning = raise_alert("stuck_attempt", subject="attempt:att_1", dedupe_key="stuck", details={}, now=NOW)
    for alert in (ended, once, warning):
        acknowledge(alert.pk, "li.m", "", NOW)
    lost(1, now=LATER)
    raise_alert("stuck_attempt", subject="attempt:att_1", dedupe_key="stuck", details={}, now=LATER)
    resolve_alert(ended.dedupe_key, "found", LATER)
    assert reraise_acknowledged(NOW, NOW + HALF_AN_HOUR) == 0


def test_a_code_nobody_knows_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        raise_alert("no_such_code", subject="x", dedupe_key="x", details={}, now=NOW)


def test_exactly_the_codes_that_must_not_wait_are_critical() -> None:
    assert {code for code, severity in SEVERITIES.items() if severity == "critical"} == {
        "submission_unknown_surge",
        "unmatched_charge",
        "submission_abandoned",
        "unknown_slots_full",
        "emergency_override",
        "output_lost",
        "refusal_frozen",
        "no_dispatcher",
        "lease_drift",
        "replay_difference",
    }


@pytest.mark.parametrize(
    "impossible",
    [
        {"severity": "loud"},
        {"count": 0},
        {"acknowledged_at": NOW},
        {"acknowledged_by": "li.m"},
        {"resolved_at": NOW},
        {"resolved_why": "gone"},
        {"reraises": 1, "reraised_at": NOW},  # and nobody acknowledged it before
        {"first_acknowledged_at": NOW, "first_acknowledged_by": "li.m"},
        {"last_seen_at": NOW - timedelta(days=1)},
    ],
)
def test_the_database_refuses_an_alert_that_cannot_be(impossible: dict[str, Any]) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        AlertFactory(**impossible)


def test_the_database_refuses_a_second_open_alert_of_one_key() -> None:
    AlertFactory(dedupe_key="one", resolved=True)
    AlertFactory(dedupe_key="one")
    with pytest.raises(DatabaseError), transaction.atomic():
        AlertFactory(dedupe_key="one")


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Each in a thread and a session of its own."""

    def run(call: Callable[[], Any]) -> Any:
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [done.result() for done in [pool.submit(run, call) for call in calls]]


@pytest.mark.django_db(transaction=True)
def test_raised_by_eight_workers_at_once_it_is_one_alert_counted_eight_times() -> None:
    at_once(*[lost] * 8)
    assert Alert.objects.get().count == 8


@pytest.mark.django_db(transaction=True)
def test_an_acknowledgement_that_races_the_end_and_a_new_sight_changes_neither() -> None:
    """Whatever comes first, the ended alert stays ended and acknowledged, and no sight is lost."""
    for number in range(8):
        alert = lost(number)
        at_once(
            partial(acknowledge, alert.pk, "li.m", "", LATER),
            partial(resolve_alert, alert.dedupe_key, "found", LATER),
            partial(lost, number, now=LATER),
        )
        alert.refresh_from_db()
        assert (alert.acknowledged_by, alert.resolved_why) == ("li.m", "found")
        reopened = Alert.objects.unresolved().filter(dedupe_key=alert.dedupe_key).first()
        assert alert.count + (reopened.count if reopened else 0) == 2


@pytest.mark.django_db(transaction=True)
def test_eight_workers_that_raise_it_again_raise_it_once() -> None:
    alert = lost()
    acknowledge(alert.pk, "li.m", "", NOW)
    lost(now=LATER)
    raised = at_once(*[lambda: reraise_acknowledged(NOW, NOW + HALF_AN_HOUR)] * 8)
    alert.refresh_from_db()
    assert (sum(raised), alert.reraises) == (1, 1)
