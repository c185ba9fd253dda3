"""How often a provider sees bytes that it refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.refusals import (
    Place,
    Record,
    RefusalState,
    Standing,
    binding,
    may_claim,
    refused,
    standing,
    supply_version,
)

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HERE = Place(supply_id=7, provider="ark", model_family="seedance", version=supply_version("2.0", 1))
SIBLING = replace(HERE, supply_id=8)
FIRST = Record(
    1,
    "ark",
    "seedance",
    {7: HERE.version, 8: SIBLING.version},
    refusals=1,
    refused_at=NOON,
    last_refused_attempt="att_1",
)


def test_the_first_refusal_keeps_the_bytes_away_for_a_quarter_of_an_hour() -> None:
    assert standing(FIRST, NOON) == Standing(RefusalState.COOLDOWN, NOON + timedelta(minutes=15))


def test_re_probes_come_after_15_minutes_1_hour_and_6_hours_and_then_never() -> None:
    record, now, waits = FIRST, NOON, []
    while (at := standing(record, now).next_probe_at) is not None:
        waits.append(at - now)
        now = at
        record = refused(record, f"att_{len(waits) + 1}", now)
    assert waits == [timedelta(minutes=15), timedelta(hours=1), timedelta(hours=6)]
    assert record.refusals == 4
    assert standing(record, now + timedelta(days=4000)) == Standing(RefusalState.FROZEN)


@given(asks_s=st.lists(st.integers(1, 7 * 3600), min_size=50, max_size=300))
def test_however_often_somebody_asks_a_provider_refuses_the_same_bytes_at_most_four_times(
    asks_s: list[int],
) -> None:
    record, now, refusals_at = FIRST, NOON, [NOON]
    for number, wait_s in enumerate([*asks_s, 100 * 3600, *asks_s]):
        now += timedelta(seconds=wait_s)
        if may_claim(record, now):
            record = refused(replace(record, probe=f"probe_{number}"), f"probe_{number}", now)
            refusals_at.append(now)
    assert len(refusals_at) <= 4
    assert record.refusals == len(refusals_at)


def test_skips_move_no_clock() -> None:
    due = NOON + timedelta(minutes=15)
    for minute in range(15):
        assert standing(FIRST, NOON + timedelta(minutes=minute)).next_probe_at == due
    assert not may_claim(FIRST, due - timedelta(microseconds=1))
    assert may_claim(FIRST, due)


def test_while_a_probe_runs_everybody_else_waits() -> None:
    probed = replace(FIRST, probe="att_2")
    later = NOON + timedelta(hours=3)
    assert not may_claim(probed, later)
    seen = standing(probed, later)
    assert seen.state == RefusalState.COOLDOWN
    assert seen.next_probe_at is not None
    assert seen.next_probe_at > later


def test_a_refused_probe_gives_its_claim_back_but_another_attempts_refusal_does_not() -> None:
    probed = replace(FIRST, probe="att_2")
    assert refused(probed, "att_2", NOON).probe == ""
    assert refused(probed, "att_3", NOON).probe == "att_2"


def test_one_refusal_told_twice_counts_once_and_two_jobs_at_once_count_twice() -> None:
    assert refused(FIRST, "att_1", NOON + timedelta(hours=1)) == FIRST
    assert refused(FIRST, "att_9", NOON).refusals == 2


@pytest.mark.parametrize(
    "lost", [{"refusals": None}, {"refused_at": None}, {"refusals": None, "refused_at": None}]
)
def test_a_record_whose_count_or_time_is_missing_counts_as_frozen(lost: dict[str, None]) -> None:
    record = replace(FIRST, **lost)
    assert standing(record, NOON + timedelta(days=99)).state == RefusalState.FROZEN
    assert not may_claim(record, NOON + timedelta(days=99))


def test_a_missing_count_stays_missing_after_one_more_refusal() -> None:
    assert refused(replace(FIRST, refusals=None), "att_2", NOON).refusals is None


def test_supplies_of_one_provider_and_family_share_a_record() -> None:
    assert binding([FIRST], HERE) == binding([FIRST], SIBLING) == FIRST
    assert binding([FIRST], replace(HERE, provider="fal")) is None
    assert binding([FIRST], replace(HERE, model_family="veo")) is None


def test_a_boundary_frees_that_supply_only() -> None:
    upgraded = replace(HERE, version=supply_version("2.1", 1))
    assert binding([FIRST], upgraded) is None
    assert binding([FIRST], SIBLING) == FIRST


def test_after_its_boundary_a_supply_has_its_own_record_which_comes_before_the_shared() -> None:
    upgraded = replace(HERE, version=supply_version("2.0", 2))
    own = replace(FIRST, supply_id=7, versions={7: upgraded.version})
    shared = replace(FIRST, versions={7: upgraded.version, 8: SIBLING.version}, refusals=4)
    assert binding([shared, own], upgraded) == own
    assert binding([shared, own], SIBLING) == shared
    assert binding([own], replace(upgraded, version=supply_version("2.2", 2))) is None


def test_a_supply_that_came_later_is_held_like_its_siblings() -> None:
    assert binding([FIRST], replace(HERE, supply_id=99, version="3|x")) == FIRST
