"""What selections are decided by: where there is nothing to read, and of circuits on their way back."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.models import SupplyBinding
from catalog.revision import bump_revision
from dispatch.capacity import Kind
from dispatch.live_catalogue import live_catalogue
from dispatch.selection_facts import _used_in_epoch, read_statistics
from health.circuit import State
from health.snapshot import HealthFacts, HealthSnapshot
from tests.engine import Engine
from tests.factories import NOW, CapacityLeaseFactory, CostRuleVersionFactory, SupplyFactory


@pytest.mark.django_db
def test_the_statistics_of_no_supply_are_none() -> None:
    assert read_statistics((), NOW) == {}


def test_a_model_whose_last_binding_was_closed_keeps_no_scan_from_its_end(engine: Engine) -> None:
    job = engine.job()
    SupplyBinding.objects.update(enabled=False)
    bump_revision()
    engine.step()
    assert engine.reload(job).state in ("queued", "failed")


@pytest.mark.django_db
def test_only_held_leases_of_the_present_epoch_count_and_all_circuits_of_a_kind_are_one_query() -> None:
    first, second, third = (SupplyFactory() for _ in range(3))
    for supply, epoch in ((first, 2), (first, 2), (first, 1), (second, 0)):
        place = {"attempt__supply": supply, "channel_epoch": epoch, "supply_epoch": epoch}
        CapacityLeaseFactory(**place)
        CapacityLeaseFactory(**place, state="released", released_at=NOW)
    health = HealthSnapshot(
        channels={
            first.channel_id: HealthFacts(State.PROBING, epoch=2),
            second.channel_id: HealthFacts(State.CIRCUIT_OPEN),
        },
        supplies={
            first.pk: HealthFacts(State.RECOVERING, epoch=1),
            second.pk: HealthFacts(State.PROBING, epoch=0),
            third.pk: HealthFacts(State.PROBING, epoch=7),
        },
    )
    with CaptureQueriesContext(connection) as asked:
        used = _used_in_epoch(health)
    assert used == {
        (Kind.CHANNEL.value, first.channel_id): 2,
        (Kind.SUPPLY.value, first.pk): 1,
        (Kind.SUPPLY.value, second.pk): 1,
        (Kind.SUPPLY.value, third.pk): 0,
    }
    assert len(asked) == 2
    with CaptureQueriesContext(connection) as asked:
        assert _used_in_epoch(HealthSnapshot(channels={}, supplies={second.pk: HealthFacts()})) == {}
    assert len(asked) == 0


@pytest.mark.django_db
def test_the_copy_that_was_found_to_be_of_the_present_revision_is_the_one_given() -> None:
    CostRuleVersionFactory(effective_from=NOW + timedelta(hours=1))
    present = live_catalogue(NOW)

    class Moment(datetime):
        """While it is compared, the catalogue changes and another thread keeps its own copy."""

        def __ge__(self, end: datetime) -> bool:
            bump_revision()
            live_catalogue(NOW)
            return super().__ge__(end)

    assert live_catalogue(Moment.fromtimestamp(NOW.timestamp(), NOW.tzinfo)) is present
    assert live_catalogue(NOW).revision == present.revision + 1
