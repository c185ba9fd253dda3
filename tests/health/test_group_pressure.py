"""Accounts that share one real limit pause together."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.db import connection

from catalog.models import Supply
from health.models import Alert, GroupPressure
from health.services.claim_group_probe import claim_group_probe
from health.snapshot import GroupPause, group_pauses
from tests.factories import NOW, CapacityGroupFactory, ChannelFactory, SupplyFactory
from tests.health.evidence import OVERLOADED, QUOTA, fail, health_of

pytestmark = pytest.mark.django_db
FULL = replace(OVERLOADED, code="rate_limited")


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def pair() -> tuple[Supply, Supply]:
    """Two channels of one group."""
    group = CapacityGroupFactory()
    one, other = (SupplyFactory(channel=ChannelFactory(capacity_group=group)) for _ in range(2))
    return one, other


def pause_of(supply: Supply, at: datetime) -> GroupPause | None:
    group = supply.channel.capacity_group_id
    assert group is not None
    return group_pauses([group], at).get(group)


def test_429_on_all_accounts_pauses_the_group_and_disables_nothing(
    pair: tuple[Supply, Supply],
) -> None:
    for supply in pair:
        fail(supply, replace(FULL, retry_after_s=90.0))
    assert pause_of(pair[0], later(89)) == GroupPause(later(90), probe_due=False)
    assert [health_of(supply.channel).state for supply in pair] == ["healthy", "healthy"]
    assert not Alert.objects.exists()


def test_after_the_pause_one_attempt_probes_and_then_the_group_is_free(pair: tuple[Supply, Supply]) -> None:
    fail(pair[0], FULL)
    fail(pair[1], FULL)
    group = pair[0].channel.capacity_group_id
    assert group is not None
    assert not claim_group_probe(group, later(29))
    assert pause_of(pair[0], later(30)) == GroupPause(later(30), probe_due=True)
    assert claim_group_probe(group, later(30))
    assert not claim_group_probe(group, later(31))
    assert pause_of(pair[0], later(31)) == GroupPause(later(60), probe_due=False)
    assert pause_of(pair[0], later(60)) is None


def test_channels_that_share_nothing_do_not_pause_each_other() -> None:
    for _ in range(2):
        fail(SupplyFactory(), FULL)
    assert not GroupPressure.objects.exists()


def test_a_used_up_quota_is_no_pressure(pair: tuple[Supply, Supply]) -> None:
    for supply in pair:
        fail(supply, QUOTA)
    assert not GroupPressure.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_eight_workers_that_want_to_probe_a_group_exactly_one_may(pair: tuple[Supply, Supply]) -> None:
    fail(pair[0], FULL)
    fail(pair[1], FULL)
    group = pair[0].channel.capacity_group_id
    assert group is not None

    def claim(_number: int) -> bool:
        try:
            return claim_group_probe(group, later(30))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(claim, range(8))).count(True) == 1
