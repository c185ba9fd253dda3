"""Two pulses on one database: one leads, and whatever happens to it, the other takes over."""

import signal

import pytest
from django.db import connection

from dispatch.models import Bell
from tests.journeys.conftest import Start, sessions
from tests.journeys.processes import PATIENCE_S, Running, busy, kill, wait_until

pytestmark = pytest.mark.journey
LEADS = "This pulse leads now"


@pytest.fixture
def leader(start: Start) -> Running:
    pulse = start("pulse", name="leader")
    pulse.says(LEADS, PATIENCE_S)
    return pulse


@pytest.fixture
def standby(leader: Running, start: Start) -> Running:
    pulse = start("pulse", name="standby")
    wait_until(lambda: sessions() == 2, PATIENCE_S, "the second pulse has its session")
    assert LEADS not in pulse.output()
    return pulse


def test_a_pulse_rings_every_bell(leader: Running) -> None:
    wait_until(lambda: Bell.objects.filter(name="scan").exists(), PATIENCE_S, "the scan is rung")


def test_a_killed_leader_is_followed_within_two_seconds(leader: Running, standby: Running) -> None:
    kill(leader.pid)
    standby.says(LEADS, busy(2))


def test_a_leader_that_is_stopped_but_not_dead_is_followed_within_ten_seconds(
    leader: Running, standby: Running
) -> None:
    kill(leader.pid, signal.SIGSTOP)
    standby.says(LEADS, busy(10))
    kill(leader.pid, signal.SIGCONT)
    leader.says("lost its database", PATIENCE_S)
    assert leader.process.poll() is None
    assert leader.output().count(LEADS) == 1


def test_a_leader_whose_session_the_database_ends_leads_again_or_is_followed(leader: Running) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks"
            " WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        assert cursor.rowcount == 1
    wait_until(lambda: leader.output().count(LEADS) == 2, PATIENCE_S, "it leads again")


def test_asked_to_stop_a_pulse_ends_at_once(leader: Running) -> None:
    for _ in range(3):
        kill(leader.pid, signal.SIGTERM)
    assert leader.process.wait(busy(2)) == 0
