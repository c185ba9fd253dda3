"""One alert for each condition, from when it begins until it ends."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from health.alerts import SEVERITIES, acknowledge, raise_alert, resolve_alert, resolve_alerts
from health.models import Alert
from tests.factories import NOW, AlertFactory

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(minutes=5)


def lost(number: int = 1, **values: Any) -> Alert:
    given = {"details": {"job": f"job_{number}"}, "now": NOW} | values
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


@pytest.mark.django_db(transaction=True)
def test_raised_by_eight_workers_at_once_it_is_one_alert_counted_eight_times() -> None:
    def run(raise_one: Callable[[], Alert]) -> None:
        try:
            raise_one()
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(run, lost) for _ in range(8)]:
            done.result()
    assert Alert.objects.get().count == 8
