"""A worker cluster under its guard: replaced when it hangs, never outliving the guard, stopped in order."""

import signal
from datetime import UTC, datetime

import psutil
import pytest
from django.utils import timezone

from dispatch.models import Bell
from tests.journeys.conftest import Start
from tests.journeys.processes import PATIENCE_S, Running, all_gone, busy, kill, wait_until

pytestmark = pytest.mark.journey
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def answered_since(moment: datetime) -> bool:
    return Bell.objects.filter(name="scan", answered_at__gt=moment).exists()


def await_answer(within_s: float, what: str) -> float:
    """An idle cluster is asked seldom; here the scan is due at once."""
    began_at = timezone.now()
    Bell.objects.filter(name="scan").update(rung_at=LONG_AGO)
    return wait_until(lambda: answered_since(began_at), within_s, what)


def cluster(guard: Running) -> psutil.Process:
    """The head of the cluster: the one child of its guard."""
    return psutil.Process(guard.pid).children()[0]


def sentinel(guard: Running) -> psutil.Process:
    """The process that watches the workers, the queue's reader and its monitor."""
    return cluster(guard).children()[0]


@pytest.fixture
def guard(start: Start) -> Running:
    start("pulse")
    guard = start("worker", "control", "--grace", "3")
    await_answer(PATIENCE_S, "the cluster answers its first bell")
    return guard


def test_a_cluster_that_is_stopped_in_its_tracks_is_replaced_and_answers_within_ten_seconds(
    guard: Running,
) -> None:
    old = guard.family()[1:]
    for member in old:
        kill(member.pid, signal.SIGSTOP)
    await_answer(busy(10), "a new cluster answers")
    assert "answers no bell" in guard.output()
    wait_until(lambda: all_gone(old), PATIENCE_S, "every process of the old cluster ends")


def test_killed_workers_that_took_the_lock_of_the_queue_with_them_are_replaced(guard: Running) -> None:
    old = cluster(guard)
    for worker in sentinel(guard).children():
        kill(worker.pid)
    await_answer(busy(12), "the cluster, mended or replaced, answers")
    assert guard.process.poll() is None

    def it_says_which() -> bool:  # a little after it has ended the old one, should it have
        return old.is_running() == ("is replaced" not in guard.output())

    wait_until(it_says_which, PATIENCE_S, "the guard says whether it was replaced")


def test_a_cluster_whose_head_or_sentinel_is_killed_is_replaced_whole(guard: Running) -> None:
    for part in (cluster, sentinel):
        old = guard.family()[1:]
        kill(part(guard).pid)
        wait_until(lambda old=old: all_gone(old), busy(5), "the rest of the old cluster ends")  # type: ignore[misc]
        await_answer(busy(15), "a new cluster answers")


def test_a_killed_guard_takes_its_cluster_with_it(guard: Running) -> None:
    family = guard.family()
    kill(guard.pid)
    wait_until(lambda: all_gone(family), busy(3), "every process of the cluster ends")


def test_asked_to_stop_more_than_once_it_ends_in_order(guard: Running) -> None:
    family = guard.family()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        kill(guard.pid, number)
    assert guard.process.wait(busy(6)) == 0
    wait_until(lambda: all_gone(family), PATIENCE_S, "every process of the cluster ends")


def test_a_hung_cluster_does_not_delay_the_end_beyond_its_grace(guard: Running) -> None:
    family = guard.family()
    for member in family[1:]:
        kill(member.pid, signal.SIGSTOP)
    kill(guard.pid, signal.SIGTERM)
    assert guard.process.wait(busy(6)) == 0
    wait_until(lambda: all_gone(family), PATIENCE_S, "every process of the cluster ends")
