"""One adapter after another, with an account at its face of the simulator."""

from collections.abc import Iterator

import pytest

from catalog.providers.http import Transport
from catalog.providers.types import ChannelAccess
from catalog.simulator.server import Simulator
from tests.providers.cases import CASES, Case
from tests.providers.conftest import CALM, access


@pytest.fixture(params=CASES, ids=lambda case: case.adapter.key)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def channel(case: Case, simulator: Simulator) -> ChannelAccess:
    return access(simulator.base_url(case.adapter.key), case.adapter.key)


@pytest.fixture
def client(channel: ChannelAccess) -> Iterator[Transport]:
    with Transport(channel, CALM) as transport:
        yield transport
