"""The queue between processes: in order, once, with the transaction, and without delay."""

import threading
import time
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from config.broker import WAIT_S, ListeningBroker
from dispatch.ringing import wake

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def broker() -> ListeningBroker:
    return ListeningBroker("control")


class Reader(threading.Thread):
    """Takes tasks on a connection of its own, as the process of a cluster does, until it has `wanted`."""

    def __init__(self, wanted: int, queue: str = "control") -> None:
        super().__init__()
        self.broker, self.wanted = ListeningBroker(queue), wanted
        self.taken: list[tuple[str, float]] = []
        self.listens = threading.Event()
        self.gives_up_s = time.monotonic() + 15

    def run(self) -> None:
        while len(self.taken) < self.wanted and time.monotonic() < self.gives_up_s:
            for _, payload in self.broker.dequeue() or []:
                self.taken.append((payload, time.monotonic()))
            self.listens.set()
        connection.close()


@pytest.fixture
def reader() -> Iterator[Reader]:
    reader = Reader(wanted=1)
    reader.start()
    assert reader.listens.wait(10)
    yield reader
    reader.join(20)


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


def test_a_waiting_reader_gets_a_new_task_long_before_it_would_look_again(
    broker: ListeningBroker, reader: Reader
) -> None:
    time.sleep(0.1)  # into its wait
    began_s = time.monotonic()
    broker.enqueue("now")
    reader.join(5)
    ((payload, taken_s),) = reader.taken
    assert payload == "now"
    assert taken_s - began_s < WAIT_S / 2


def test_two_readers_never_take_the_same_task(broker: ListeningBroker) -> None:
    readers = [Reader(wanted=100), Reader(wanted=100)]
    for number in range(100):
        broker.enqueue(str(number))
    for each in readers:
        each.gives_up_s = time.monotonic() + 3
        each.start()
    for each in readers:
        each.join(10)
    taken = [payload for each in readers for payload, _ in each.taken]
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
    reader.join(10)
    assert [payload for payload, _ in reader.taken] == ["after the loss"]


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
    ((_, payload),) = broker.dequeue() or []
    assert SignedPackage.loads(payload)["func"] == "dispatch.tasks.scan_now"
    assert payloads(broker) == ["a row"]
