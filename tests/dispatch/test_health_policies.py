"""Settings show the parameters of circuits that hold, and which channels and supplies have their own."""

import pytest

from catalog.models import Channel, Supply
from dispatch.queries.health_policies import differing_policies, own_policy
from health.models import HealthPolicy
from tests.factories import NOW, ChannelFactory, SupplyFactory

pytestmark = pytest.mark.django_db


def saved(version: int, channel: Channel | None = None, supply: Supply | None = None, **own: int) -> None:
    HealthPolicy.objects.create(
        channel=channel, supply=supply, version=version, parameters=own, saved_by="li.m", saved_at=NOW
    )


def test_the_newest_of_each_holds_and_one_without_parameters_does_not_differ() -> None:
    assert own_policy() is None
    channel, other, supply = ChannelFactory(slug="b"), ChannelFactory(slug="a"), SupplyFactory(slug="s")
    saved(1, open_after=3)
    saved(2, open_after=4)
    saved(1, channel=channel, open_after=7)
    saved(2, channel=channel, open_after=8)
    saved(1, channel=other, open_after=9)
    saved(2, channel=other)  # as the installation again
    saved(1, supply=supply, degrade_after=2)
    own = own_policy()
    assert own is not None
    assert (own.version, own.parameters) == (2, {"open_after": 4})
    assert [(each.channel, each.supply, each.parameters) for each in differing_policies()] == [
        (channel, None, {"open_after": 8}),
        (None, supply, {"degrade_after": 2}),
    ]
