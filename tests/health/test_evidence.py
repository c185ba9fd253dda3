"""What ended attempts do to the stored health of their channels and supplies."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from catalog.models import AuditEntry
from health.circuit import Cause, Subject
from health.models import Alert, ChannelHealth, HealthEvent, SupplyHealth
from health.parameters import ParametersError
from health.services.begin_recoveries import begin_recoveries
from health.services.record_evidence import AttemptEvidence, record_evidence
from health.services.save_policy import save_policy
from health.services.switch import disable, enable
from health.snapshot import HealthFacts, health_snapshot
from tests.factories import NOW, ChannelFactory, ChannelHealthFactory, SupplyFactory, SupplyHealthFactory
from tests.health.evidence import (
    CONTENT_REFUSED,
    FAILED,
    NO_BALANCE,
    NO_CONNECTION,
    OPERATOR,
    OVERLOADED,
    QUOTA,
    UNKNOWN,
    fail,
    health_of,
    piece,
    probing,
    win,
)

pytestmark = pytest.mark.django_db


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_a_supply_opens_after_five_failures_in_a_row_and_tells_once() -> None:
    supply = SupplyFactory()
    fail(supply, times=5)
    assert health_of(supply).state == "circuit_open"
    alert = Alert.objects.get()
    assert (alert.code, alert.subject) == ("supply_circuit_open", f"supply:{supply.slug}")
    assert (alert.details["cause"], alert.details["code"]) == ("repeated_failures", "internal_permanent")


def test_a_channel_without_balance_is_out_at_once_and_its_supplies_are_not_to_blame() -> None:
    supply = SupplyFactory()
    fail(supply, NO_BALANCE)
    assert health_of(supply.channel).state == "circuit_open"
    assert health_of(supply).state == "healthy"
    assert [alert.code for alert in Alert.objects.all()] == ["channel_circuit_open"]


@pytest.mark.parametrize("raw_status", ["400", "403", "500", "200"])
def test_fifty_moderation_refusals_leave_no_trace_whatever_status_carried_them(raw_status: str) -> None:
    supply = SupplyFactory()
    fail(supply, replace(CONTENT_REFUSED, raw_status=raw_status), times=50)
    assert not SupplyHealth.objects.exists()
    assert not ChannelHealth.objects.exists()
    assert not HealthEvent.objects.exists()
    assert not Alert.objects.exists()


def test_content_errors_do_not_interrupt_a_recovery() -> None:
    supply = probing(SupplyFactory())
    win(supply, times=2)
    fail(supply, CONTENT_REFUSED, times=3)
    win(supply, times=3)
    assert health_of(supply).state == "healthy"


def test_an_unknown_submission_is_one_failure_of_its_supply() -> None:
    supply = SupplyFactory()
    fail(supply, UNKNOWN)
    assert health_of(supply).failures == 1
    assert health_of(supply.channel).state == "healthy"


def test_long_term_quota_is_no_illness_but_a_pause() -> None:
    supply = SupplyFactory()
    fail(supply, replace(QUOTA, retry_after_s=3600.0), times=10)
    stored = health_of(supply)
    assert (stored.state, stored.failures) == ("healthy", 0)
    assert (stored.not_before, stored.not_before_code) == (later(3600), "quota")


def test_retry_after_pauses_the_supply_and_a_shorter_one_does_not_shorten_it() -> None:
    supply = SupplyFactory()
    fail(supply, replace(OVERLOADED, retry_after_s=60.0))
    fail(supply, replace(OVERLOADED, retry_after_s=5.0), at=later(1))
    assert health_snapshot([], [supply.pk]).supplies[supply.pk].not_before == later(60)
    assert health_of(supply.channel).not_before is None


def test_two_connect_failures_open_the_channel() -> None:
    supply = SupplyFactory()
    fail(supply, NO_CONNECTION, times=2)
    assert health_of(supply.channel).state == "circuit_open"


def test_the_same_code_from_two_supplies_of_a_channel_opens_the_channel() -> None:
    one = SupplyFactory()
    other = SupplyFactory(channel=one.channel)
    fail(one, OVERLOADED)
    fail(other, OVERLOADED, at=later(60))
    event = HealthEvent.objects.get(subject="channel")
    assert (event.to_state, event.cause) == ("circuit_open", Cause.SAME_CODE_ON_SUPPLIES)


def test_a_result_of_an_older_epoch_changes_nothing() -> None:
    supply = probing(SupplyFactory())
    record_evidence([replace(piece(supply), supply_epoch=0)], NOW)
    record_evidence([replace(piece(supply, OVERLOADED), supply_epoch=0)], NOW)
    stored = health_of(supply)
    assert (stored.state, stored.recovery_successes, stored.epoch) == ("probing", 0, 1)


def test_samples_of_a_busy_supply_are_kept_by_the_second() -> None:
    supply = SupplyFactory()
    for tenth in range(40):
        win(supply, at=later(tenth / 10), times=3)
    assert [successes for _, _, successes in health_of(supply).window] == [30, 30, 30, 30]


def test_the_failure_rate_of_a_supply_is_counted_over_the_stored_window() -> None:
    supply = SupplyFactory()
    for second in range(0, 30, 3):
        fail(supply, at=later(second))
        fail(supply, at=later(second + 1))
        win(supply, at=later(second + 2))
    event = HealthEvent.objects.filter(subject="supply").latest("pk")
    assert (event.to_state, event.cause) == ("circuit_open", Cause.FAILURE_RATE)


def test_a_circuit_is_probed_after_its_cooldown_and_comes_back_by_real_attempts_only() -> None:
    supply = SupplyFactory()
    fail(supply, times=5)
    assert begin_recoveries(later(29), lambda _channel: True) == []
    begun = begin_recoveries(later(30), lambda _channel: True)
    assert [(event.subject, event.to_state) for event in begun] == [("supply", "probing")]
    assert begin_recoveries(later(31), lambda _channel: True) == []
    assert Alert.objects.unresolved().count() == 1  # not whole yet
    win(supply, times=5, at=later(40))
    assert health_of(supply).state == "healthy"
    assert Alert.objects.get().resolved_why == "recovered (healthy)"


def test_a_failed_account_check_keeps_customers_away_and_is_asked_once_a_channel() -> None:
    supply = SupplyFactory()
    fail(supply, times=5)
    fail(supply, NO_BALANCE)
    asked: list[int] = []

    def refuses(channel_id: int) -> bool:
        asked.append(channel_id)
        return False

    begin_recoveries(later(30), refuses)
    assert asked == [supply.channel_id]
    assert health_of(supply.channel).state == health_of(supply).state == "circuit_open"
    assert health_of(supply.channel).cooldown_until == later(60)
    assert HealthEvent.objects.latest("pk").cause == Cause.ACCOUNT_CHECK_FAILED
    begin_recoveries(later(60), lambda _channel: True)
    assert health_of(supply.channel).state == "probing"


def test_a_reopening_counts_on_the_same_alert_and_a_later_outage_opens_a_new_one() -> None:
    supply = probing(SupplyFactory())
    fail(supply)
    assert Alert.objects.get().count == 2
    begin_recoveries(later(3600), lambda _channel: True)
    win(supply, times=5)
    fail(supply, times=5)
    assert Alert.objects.count() == 2
    assert Alert.objects.unresolved().get().count == 1


def test_disabled_is_left_by_an_operator_only_and_both_ways_are_audited() -> None:
    supply = SupplyFactory()
    fail(supply, times=5)
    disable(Subject.SUPPLY, supply.pk, OPERATOR, "maintenance", NOW)
    begin_recoveries(later(100_000), lambda _channel: True)
    win(supply, times=9)
    fail(supply, times=9)
    assert health_of(supply).state == "disabled"
    assert Alert.objects.unresolved().count() == 0
    enable(Subject.SUPPLY, supply.pk, OPERATOR, "done", NOW)
    stored = health_of(supply)
    assert (stored.state, stored.epoch) == ("probing", 2)
    entries = AuditEntry.objects.order_by("pk").values_list("actor", "action", "subject")
    named = f"supply:{supply.public_id}"
    assert list(entries) == [
        ("li.m", "disable supply health", named),
        ("li.m", "enable supply health", named),
    ]
    assert HealthEvent.objects.filter(actor="li.m", reason="maintenance").count() == 1


def test_an_operator_may_enable_a_channel_as_healthy() -> None:
    channel = ChannelFactory()
    disable(Subject.CHANNEL, channel.pk, OPERATOR, "", NOW)
    assert enable(Subject.CHANNEL, channel.pk, OPERATOR, "", NOW, as_healthy=True) is not None
    assert health_of(channel).state == "healthy"


def test_switching_to_where_it_is_does_nothing() -> None:
    channel = ChannelFactory()
    assert enable(Subject.CHANNEL, channel.pk, OPERATOR, "", NOW) is None
    disable(Subject.CHANNEL, channel.pk, OPERATOR, "", NOW)
    assert disable(Subject.CHANNEL, channel.pk, OPERATOR, "", NOW) is None
    assert AuditEntry.objects.count() == 1


def test_parameters_of_a_supply_come_before_its_channels_and_those_before_the_installations() -> None:
    strict = SupplyFactory()
    lenient = SupplyFactory(channel=strict.channel)
    elsewhere = SupplyFactory()
    save_policy({"open_after": 4, "degrade_after": 1}, OPERATOR, NOW)
    save_policy({"open_after": 3}, OPERATOR, NOW, channel_id=strict.channel_id)
    save_policy({"open_after": 9}, OPERATOR, NOW, supply_id=strict.pk)
    save_policy({"open_after": 2}, OPERATOR, NOW, supply_id=strict.pk)
    opened_after = []
    for supply in (strict, lenient, elsewhere):
        failures = 0
        while health_of(supply).state != "circuit_open":
            fail(supply)
            failures += 1
        opened_after.append(failures)
    assert opened_after == [2, 3, 4]
    assert HealthEvent.objects.filter(subject_id=elsewhere.pk, to_state="degraded", subject="supply").exists()


def test_a_policy_with_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ParametersError, match="open_afer"):
        save_policy({"open_afer": 3}, OPERATOR, NOW)


def test_an_event_keeps_the_evidence_the_count_the_epoch_and_the_parameters() -> None:
    supply = SupplyFactory()
    record_evidence([replace(piece(supply, OVERLOADED), attempt=f"att_{n}") for n in range(5)], NOW)
    event = HealthEvent.objects.filter(subject="supply").latest("pk")
    assert (event.attempt, event.epoch, event.recovery_successes) == ("att_4", 1, 0)
    assert (event.evidence["code"], event.before["failures"]) == ("overloaded", 4)
    assert event.parameters["open_after"] == 5


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE health_healthevent SET cause = 'x'",
        "DELETE FROM health_healthevent",
        "TRUNCATE health_healthevent",
        "UPDATE health_healthpolicy SET saved_by = 'x'",
        "DELETE FROM health_healthpolicy",
        "TRUNCATE health_healthpolicy",
    ],
)
def test_events_and_policies_are_never_changed(statement: str) -> None:
    fail(SupplyFactory(), times=5)
    save_policy({"open_after": 4}, OPERATOR, NOW)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            cursor.execute(statement)


@pytest.mark.parametrize(
    "impossible",
    [
        {"state": "ill"},
        {"state": "circuit_open"},
        {"state": "healthy", "cooldown_until": NOW},
        {"state": "recovering", "recovery_successes": 1},
        {"state": "healthy", "recovery_successes": 3},
    ],
)
def test_the_database_refuses_a_circuit_that_cannot_be(impossible: dict[str, Any]) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        ChannelHealth.objects.create(channel=ChannelFactory(), **impossible)


def test_the_snapshot_takes_two_queries_and_knows_what_was_never_tried(
    django_assert_num_queries: Any,
) -> None:
    recovering = SupplyHealthFactory(state="recovering", recovery_successes=3, epoch=2)
    opened = ChannelHealthFactory(state="circuit_open", epoch=1)
    fresh = SupplyFactory()
    with django_assert_num_queries(2):
        seen = health_snapshot([opened.pk, fresh.channel_id], [recovering.pk, fresh.pk])
    assert seen.supplies == {recovering.pk: HealthFacts("recovering", 3, 2), fresh.pk: HealthFacts()}
    assert seen.channels[opened.pk] == HealthFacts("circuit_open", 0, 1, later(30))


def test_the_usual_success_locks_one_row_and_writes_one(django_assert_num_queries: Any) -> None:
    supply = SupplyFactory()
    win(supply)
    usual = piece(supply)
    with django_assert_num_queries(4):  # policies, the channel, the supply's row locked, and written
        record_evidence([usual], NOW)


def _at_once(*works: Callable[[], object]) -> None:
    """Each on its own thread and connection; the first error of any is raised."""

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(run, work) for work in works]:
            done.result()


@pytest.mark.django_db(transaction=True)
def test_opposite_batches_of_two_workers_neither_deadlock_nor_lose_a_failure() -> None:
    supplies = [SupplyFactory() for _ in range(4)]
    save_policy({"open_after": 1000, "rate_samples": 1000, "correlation_supplies": 9}, OPERATOR, NOW)
    batch = [piece(supply, OVERLOADED) for supply in supplies]

    def settle(batch: list[AttemptEvidence]) -> None:
        for _ in range(25):
            record_evidence(batch, NOW)

    _at_once(partial(settle, batch), partial(settle, batch[::-1]))
    assert {health_of(supply).failures for supply in supplies} == {50}


@pytest.mark.django_db(transaction=True)
def test_eight_reconcilers_at_once_begin_one_recovery_once() -> None:
    fail(SupplyFactory(), times=5)
    _at_once(*[partial(begin_recoveries, later(30), lambda _channel: True)] * 8)
    assert HealthEvent.objects.filter(to_state="probing").count() == 1


@pytest.mark.django_db(transaction=True)
def test_first_failures_of_eight_workers_at_once_are_all_counted_and_open_one_alert() -> None:
    supply = SupplyFactory()
    failure = piece(supply, FAILED)
    _at_once(*[partial(record_evidence, [failure], NOW)] * 8)
    assert HealthEvent.objects.filter(to_state="circuit_open").count() == 1
    assert Alert.objects.get().count == 1
