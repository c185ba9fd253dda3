"""Refused content over simulated days, as the engine asks and answers."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from catalog.models import AuditEntry, Supply
from health.memory import Match, matching_refusals, place_of
from health.models import Alert, RefusalRecord
from health.refusals import RefusalState
from health.services.claim_probe import claim_probe
from health.services.end_outlived_refusals import end_outlived_refusals
from health.services.lift_refusal import lift_refusal
from health.services.record_refusal import record_refusal
from health.services.settle_probes import settle_probe
from tests.factories import NOW, CapabilityVersionFactory, ChannelFactory, SupplyFactory
from tests.health.evidence import OPERATOR

pytestmark = pytest.mark.django_db
QUARTER = timedelta(minutes=15)


def refuse(supply: Supply, attempt: str = "att_1", at: datetime = NOW) -> RefusalRecord:
    return record_refusal("f1", place_of(supply), attempt, at)


def match(supply: Supply, at: datetime = NOW) -> Match | None:
    return matching_refusals(["f1"], [place_of(supply)], at).get("f1", {}).get(supply.pk)


def try_at(supply: Supply, attempt: str, at: datetime) -> bool:
    """A job that would go to `supply`: whether it really reached the provider, which always refuses."""
    found = match(supply, at)
    if found and not claim_probe(found.record_id, attempt, at):
        return False
    refuse(supply, attempt, at)
    return True


@pytest.fixture
def supply() -> Supply:
    return SupplyFactory()


def test_asked_for_two_days_a_provider_sees_the_same_bytes_four_times(supply: Supply) -> None:
    sent = [
        minute
        for minute in range(0, 48 * 60, 15)
        if try_at(supply, f"att_{minute}", NOW + timedelta(minutes=minute))
    ]
    assert sent == [0, 15, 75, 435]  # at once, then 15 min, 1 h and 6 h after the last real refusal
    assert not try_at(supply, "att_late", NOW + timedelta(hours=148))


def test_for_a_hundred_hours_more_skipped_jobs_move_nothing_until_the_capability_version_changes(
    supply: Supply,
) -> None:
    for number, minute in enumerate((0, 15, 75, 435)):
        assert try_at(supply, f"att_{number}", NOW + timedelta(minutes=minute))
    frozen = RefusalRecord.objects.values().get()
    skipped = [NOW + timedelta(minutes=435, hours=hour) for hour in range(101)]
    assert not any(try_at(supply, f"att_{at:%d%H}", at) for at in skipped)
    assert RefusalRecord.objects.values().get() == frozen
    supply.capability_version = CapabilityVersionFactory(supply=supply)
    supply.save()
    assert try_at(supply, "att_new", skipped[-1])
    told = Alert.objects.filter(subject=f"refusal:{frozen['public_id']}").order_by("pk")
    assert [alert.severity for alert in told] == ["warning", "critical"]


def test_operators_hear_of_the_first_refusal_and_of_the_freeze_and_of_nothing_between(supply: Supply) -> None:
    heard = []
    for number, minute in enumerate((0, 15, 75, 435)):
        try_at(supply, f"att_{number}", NOW + timedelta(minutes=minute))
        heard.append(list(Alert.objects.order_by("pk").values_list("code", "severity", "count")))
    first, frozen = ("refusal_first", "warning", 1), ("refusal_frozen", "critical", 1)
    assert heard == [[first], [first], [first], [first, frozen]]
    assert Alert.objects.unresolved().get().code == "refusal_frozen"


def test_the_warning_states_the_rule_in_numbers_and_no_content(supply: Supply) -> None:
    refuse(supply)
    details = Alert.objects.get().details
    assert details["reprobe_after_s"] == [900, 3600, 21600]
    assert details["next_probe_at"] == "2026-11-30T12:15:00Z"
    assert "f1" not in str(details)


def test_one_job_probes_and_the_others_wait_for_its_end(supply: Supply) -> None:
    refuse(supply)
    due = match(supply, NOW + QUARTER)
    assert due is not None
    assert claim_probe(due.record_id, "att_2", NOW + QUARTER)
    assert not claim_probe(due.record_id, "att_3", NOW + QUARTER)
    waiting = match(supply, NOW + QUARTER)
    assert waiting is not None
    assert waiting.standing.state == RefusalState.COOLDOWN
    assert waiting.standing.next_probe_at is not None
    assert waiting.standing.next_probe_at > NOW + QUARTER


def test_a_probe_before_its_time_is_not_given(supply: Supply) -> None:
    record = refuse(supply)
    assert not claim_probe(record.pk, "att_2", NOW + QUARTER - timedelta(seconds=1))


def test_a_generated_probe_clears_the_record_and_its_alert(supply: Supply) -> None:
    record = refuse(supply)
    claim_probe(record.pk, "att_2", NOW + QUARTER)
    assert settle_probe("att_2", True, NOW + QUARTER)
    assert match(supply) is None
    assert Alert.objects.unresolved().count() == 0
    assert refuse(supply, "att_3").refusals == 1


def test_a_probe_that_ends_without_refusal_gives_its_claim_back_and_counts_nothing(supply: Supply) -> None:
    record = refuse(supply)
    claim_probe(record.pk, "att_2", NOW + QUARTER)
    assert settle_probe("att_2", False, NOW + QUARTER)
    record.refresh_from_db()
    assert (record.refusals, record.refused_at, record.probe) == (1, NOW, "")
    assert claim_probe(record.pk, "att_3", NOW + QUARTER)


def test_an_attempt_that_holds_no_probe_clears_nothing(supply: Supply) -> None:
    refuse(supply)
    assert not settle_probe("att_9", True, NOW)
    assert match(supply) is not None


def test_two_jobs_at_once_count_twice_and_a_refusal_told_twice_counts_once(supply: Supply) -> None:
    refuse(supply, "att_1"), refuse(supply, "att_2"), refuse(supply, "att_2")
    assert RefusalRecord.objects.get().refusals == 2


def test_a_family_shares_a_record_within_a_provider_and_not_beyond(supply: Supply) -> None:
    sibling = SupplyFactory(
        channel=ChannelFactory(provider=supply.channel.provider), model_family=supply.model_family
    )
    elsewhere = SupplyFactory(channel=ChannelFactory(provider="other"), model_family=supply.model_family)
    refuse(supply)
    assert match(sibling) is not None
    assert match(elsewhere) is None


def test_a_new_model_version_frees_that_supply_only_and_counts_it_alone(supply: Supply) -> None:
    sibling = SupplyFactory(channel=supply.channel, model_family=supply.model_family)
    for number in range(4):
        refuse(supply, f"att_{number}")
    supply.model_version = "next"
    supply.save()
    assert match(supply) is None
    assert refuse(supply, "att_5").refusals == 1
    found = match(sibling)
    assert found is not None
    assert found.standing.state == RefusalState.FROZEN
    own = match(supply)
    assert own is not None
    assert own.standing.state == RefusalState.COOLDOWN


def test_a_second_boundary_starts_over_once_more(supply: Supply) -> None:
    refuse(supply, "att_1")
    for version in ("second", "third"):
        supply.model_version = version
        supply.save()
        assert match(supply) is None
        assert refuse(supply, f"att_{version}").refusals == 1
    assert RefusalRecord.objects.filter(supply=supply, ended_at=None).count() == 1


def test_an_operator_lifts_a_record_with_a_reason_and_it_is_audited(supply: Supply) -> None:
    record = refuse(supply)
    with pytest.raises(ValueError, match="reason"):
        lift_refusal(record.pk, OPERATOR, " ", NOW)
    assert lift_refusal(record.pk, OPERATOR, "the provider changed its policy", NOW)
    assert not lift_refusal(record.pk, OPERATOR, "again", NOW)
    assert match(supply) is None
    assert Alert.objects.unresolved().count() == 0
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor) == ("lift refusal", "li.m")


def test_a_record_that_lost_its_count_is_frozen(supply: Supply) -> None:
    refuse(supply)
    RefusalRecord.objects.update(refusals=None)
    found = match(supply, NOW + timedelta(days=9))
    assert found is not None
    assert found.standing.state == RefusalState.FROZEN
    assert not claim_probe(found.record_id, "att_2", NOW + timedelta(days=9))


def test_one_query_answers_for_a_batch_of_contents(supply: Supply, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    refuse(supply)
    places = [place_of(supply)]
    with django_assert_num_queries(1):
        found = matching_refusals(["f1", "f2", "f3"], places, NOW)
    assert set(found) == {"f1"}


def test_the_database_refuses_a_second_record_of_one_key(supply: Supply) -> None:
    values = {"fingerprint": "f1", "provider": "ark", "model_family": "x", "created_at": NOW}
    RefusalRecord.objects.create(**values)
    with pytest.raises(DatabaseError), transaction.atomic():
        RefusalRecord.objects.create(**values)


@pytest.mark.django_db(transaction=True)
def test_refused_on_eight_workers_at_once_it_is_one_record_counted_eight_times() -> None:
    place = place_of(SupplyFactory())

    def run(attempt: str) -> None:
        try:
            record_refusal("f1", place, attempt, NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(run, f"att_{number}") for number in range(8)]:
            done.result()
    assert RefusalRecord.objects.get().refusals == 8
    assert sorted(Alert.objects.values_list("code", flat=True)) == ["refusal_first", "refusal_frozen"]


@pytest.mark.django_db(transaction=True)
def test_of_eight_workers_that_want_to_probe_exactly_one_may() -> None:
    record = refuse(SupplyFactory())

    def run(attempt: str) -> bool:
        try:
            return claim_probe(record.pk, attempt, NOW + QUARTER)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(run, [f"att_{number}" for number in range(8)]))
    assert won.count(True) == 1


def test_a_record_ends_with_its_alert_once_every_supply_it_held_for_has_changed(supply: Supply) -> None:
    sibling = SupplyFactory(channel=supply.channel, model_family=supply.model_family)
    for number in range(4):
        refuse(supply, f"att_{number}")
    supply.model_version = "next"
    supply.save()
    refuse(supply, "att_own")
    assert end_outlived_refusals(NOW) == 0  # it still holds for the sibling
    sibling.model_version = "next"
    sibling.save()
    assert end_outlived_refusals(NOW) == 1
    assert RefusalRecord.objects.get(ended_at=None).supply == supply
    assert Alert.objects.unresolved().get().code == "refusal_first"


def test_a_record_goes_on_for_a_supply_that_came_after_it(supply: Supply) -> None:
    refuse(supply)
    SupplyFactory(channel=supply.channel, model_family=supply.model_family)
    supply.model_version = "next"
    supply.save()
    assert end_outlived_refusals(NOW) == 0


def test_a_probe_that_is_refused_after_its_supply_crossed_a_boundary_is_given_back_to_the_others(
    supply: Supply,
) -> None:
    """The refusal counts for the supply as it is now; those that did not change may be tried again."""
    sibling = SupplyFactory(channel=supply.channel, model_family=supply.model_family)
    shared = refuse(supply)
    assert claim_probe(shared.pk, "att_probe", NOW + QUARTER)
    supply.capability_version = CapabilityVersionFactory(supply=supply)
    supply.save()
    assert refuse(supply, "att_probe", NOW + QUARTER).pk != shared.pk
    assert claim_probe(shared.pk, "att_of_sibling", NOW + QUARTER)
    assert match(sibling, NOW + QUARTER) is not None
