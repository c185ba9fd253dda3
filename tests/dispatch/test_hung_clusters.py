"""How a cluster that hangs is told from one that is busy."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils.timezone import now as read_clock

from config.broker import batches_taken
from config.clusters import Taken
from dispatch import pulse, signs_of_life
from dispatch.models import WorkerBeat
from dispatch.signs_of_life import HOST
from tests.factories import NOW
from tests.journeys.processes import PATIENCE_S, wait_until

pytestmark = pytest.mark.django_db
SOON = NOW + timedelta(seconds=3)
LATE = NOW + timedelta(seconds=7)


def is_hung(cluster: str, now: datetime) -> bool:
    return pulse.is_hung(cluster, pulse.unanswered_s(cluster, now), now)


def worker_beats(at: object, cluster: str = "traffic") -> None:
    WorkerBeat.objects.create(cluster=cluster, host="here", pid=4711, beat_at=at)


def end_sessions_of_others() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_bell_that_nobody_answers_means_a_hung_cluster_once_it_is_late() -> None:
    pulse.beat(NOW)
    assert not is_hung("traffic", SOON)
    assert is_hung("traffic", LATE)


def test_a_cluster_that_answers_its_bells_is_well() -> None:
    pulse.beat(NOW)
    for name in pulse.BELLS:
        pulse.answer(name, NOW)
    assert pulse.unanswered_s("traffic", LATE) == 0
    assert not is_hung("traffic", LATE)


def test_a_cluster_with_a_worker_that_shows_life_is_busy_not_hung() -> None:
    pulse.beat(NOW)
    worker_beats(SOON)
    assert not is_hung("traffic", LATE)
    assert is_hung("traffic", LATE + timedelta(seconds=3)), "its last sign is old too"


def test_a_sign_of_life_speaks_for_its_own_cluster_only() -> None:
    pulse.beat(NOW)
    worker_beats(SOON, cluster="control")
    assert is_hung("traffic", LATE)
    assert not is_hung("control", LATE)


def test_a_host_whose_workers_are_silent_is_told_though_another_host_works() -> None:
    worker_beats(SOON)
    assert not pulse.is_silent("traffic", "here", NOW)
    assert pulse.is_silent("traffic", "there", NOW)
    assert pulse.is_silent("traffic", "here", LATE)


def test_a_host_that_takes_tasks_and_works_at_none_is_told_while_others_answer_the_bells() -> None:
    taken = Taken()
    assert not taken.in_vain("traffic", NOW)
    assert not taken.in_vain("traffic", LATE), "it took nothing"
    batches_taken.value += 1
    assert not taken.in_vain("traffic", LATE)
    assert not taken.in_vain("traffic", LATE + timedelta(seconds=6))
    worker_beats(LATE + timedelta(seconds=1))  # of a host that is named otherwise
    assert taken.in_vain("traffic", LATE + timedelta(seconds=7))


def test_a_host_whose_workers_show_life_for_what_was_taken_is_well() -> None:
    taken = Taken()
    batches_taken.value += 1
    assert not taken.in_vain("traffic", NOW)
    WorkerBeat.objects.create(cluster="traffic", host=HOST, pid=1, beat_at=NOW - timedelta(seconds=2))
    assert not taken.in_vain("traffic", LATE), "it showed a sign just before, and none for a short task"
    assert not taken.in_vain("traffic", LATE + timedelta(hours=1)), "nothing was taken since"


@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_session_was_ended_shows_life_again_within_the_same_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signs_of_life, "EVERY_S", 0.02)

    def await_a_sign() -> None:
        later = WorkerBeat.objects.filter(beat_at__gt=read_clock())
        wait_until(later.exists, PATIENCE_S, "the worker shows that it works")

    @signs_of_life.at_work("traffic")
    def long_task() -> None:
        await_a_sign()
        end_sessions_of_others()
        await_a_sign()

    long_task()
