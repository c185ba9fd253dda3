"""The queue between processes: in order, once, with the transaction, and without delay."""

import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from django.db import connection, transaction
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from config.broker import APART_S, ListeningBroker
from dispatch.ringing import wake
from tests.journeys.processes import PATIENCE_S, wait_until

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def broker() -> ListeningBroker:
    return ListeningBroker("control")


class Reader(threading.Thread):
    """Takes tasks on a connection of its own, as the process of a cluster does, until there are `wanted`."""

    def __init__(self, wanted: int, taken: list[str]) -> None:
        super().__init__()
        self.broker, self.wanted, self.taken = ListeningBroker("control"), wanted, taken
        self.gives_up_s = time.monotonic() + PATIENCE_S

    def run(self) -> None:
        while len(self.taken) < self.wanted and time.monotonic() < self.gives_up_s:
            self.taken += [payload for _, payload in self.broker.dequeue() or []]
        connection.close()

    def has_looked(self) -> bool:
        """From then on it waits, and is told of what comes."""
        return self.broker._look_at_s > 0


@pytest.fixture
def reader() -> Iterator[Reader]:
    reader = Reader(1, [])
    reader.start()
    wait_until(reader.has_looked, PATIENCE_S, "it waits")
    yield reader
    reader.join()


def payloads(broker: ListeningBroker) -> list[str]:
    return [payload for _, payload in broker.dequeue() or []]


def test_tasks_are_taken_in_the_order_in_which_they_came(broker: ListeningBroker) -> None:
    for number in range(5):
        broker.enqueue(f"task {number}")
    assert payloads(broker) == [f"task {number}" for number in range(5)]


def test_what_is_taken_is_not_taken_again_before_its_retry_and_is_gone_once_acknowledged(
    broker: ListeningBroker,
) -> None:
    broker.enqueue("once")
    ((number, _),) = broker.dequeue() or []
    assert broker.dequeue() is None
    broker.acknowledge(number)
    assert not OrmQ.objects.exists()


def test_a_cluster_takes_only_from_its_own_queue(broker: ListeningBroker) -> None:
    ListeningBroker("traffic").enqueue("network")
    assert broker.dequeue() is None
    assert payloads(ListeningBroker("traffic")) == ["network"]


def test_a_task_of_a_transaction_that_fails_was_never_there(broker: ListeningBroker) -> None:
    with transaction.atomic():
        broker.enqueue("undone")
        transaction.set_rollback(True)
    assert broker.dequeue() is None


@pytest.fixture
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for wait in ("WAIT_S", "LOOK_AT_LEAST_EVERY_S"):
        monkeypatch.setattr(f"config.broker.{wait}", 2 * PATIENCE_S)


@pytest.mark.usefixtures("long_waits")
def test_a_waiting_reader_gets_a_new_task_long_before_it_would_look_again(
    broker: ListeningBroker, reader: Reader
) -> None:
    broker.enqueue("now")
    reader.join(PATIENCE_S)
    assert reader.taken == ["now"]


def test_two_readers_never_take_the_same_task(broker: ListeningBroker) -> None:
    taken: list[str] = []
    readers = [Reader(100, taken), Reader(100, taken)]
    for number in range(100):
        broker.enqueue(str(number))
    for each in readers:
        each.start()
    for each in readers:
        each.join()
    assert sorted(taken, key=int) == [str(number) for number in range(100)]


def test_a_reader_that_loses_its_connection_works_on_and_is_told_again(
    broker: ListeningBroker, reader: Reader
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    broker.enqueue("after the loss")
    reader.join()
    assert reader.taken == ["after the loss"]


def test_a_word_has_its_task_run_once_however_often_it_is_said_and_leaves_nothing_to_acknowledge(
    broker: ListeningBroker,
) -> None:
    assert broker.dequeue() is None  # listens from here on
    with transaction.atomic():
        for _ in range(3):
            wake("dispatch.tasks.scan_now", cluster="control")
        assert not OrmQ.objects.exists()
    wake("dispatch.tasks.scan_now", cluster="control")
    ((number, payload),) = broker.dequeue() or []
    assert number is None
    assert SignedPackage.loads(payload)["func"] == "dispatch.tasks.scan_now"
    assert broker.dequeue() is None


def test_a_word_that_is_said_all_the_time_is_passed_on_at_once_and_then_now_and_again(
    broker: ListeningBroker,
) -> None:
    assert broker.dequeue() is None
    wake("dispatch.tasks.scan_now", cluster="control")
    passed_on_s = [(time.monotonic(), 0.0)]  # not before the one, and not after the other
    assert broker.dequeue(), "at once"
    while len(passed_on_s) < 4:
        wake("dispatch.tasks.scan_now", cluster="control")
        asked_s = time.monotonic()
        if broker.dequeue():
            passed_on_s.append((asked_s, time.monotonic()))
    assert all(later[1] - earlier[0] >= APART_S for earlier, later in pairwise(passed_on_s))
    wake("dispatch.tasks.scan_now", cluster="control")
    assert any(broker.dequeue() for _ in range(3)), "the last word is passed on, too"


def test_a_word_of_a_transaction_that_fails_is_never_said(broker: ListeningBroker) -> None:
    assert broker.dequeue() is None
    with transaction.atomic():
        wake("dispatch.tasks.scan_now", cluster="control")
        transaction.set_rollback(True)
    assert broker.dequeue() is None


def test_a_word_and_a_row_are_both_heard(broker: ListeningBroker) -> None:
    assert broker.dequeue() is None
    broker.enqueue("a row")
    wake("dispatch.tasks.scan_now", cluster="control")
    heard = payloads(broker) + payloads(broker)
    heard.remove("a row")  # which comes first where it was time to look at the rows anyhow
    assert [SignedPackage.loads(payload)["func"] for payload in heard] == ["dispatch.tasks.scan_now"]
