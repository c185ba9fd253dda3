"""Rings tasks in the caller's transaction: one many times by one statement, or by a word alone."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from django_q.brokers import get_broker
from django_q.tasks import async_task


class _Collector:
    """Stands for a broker, and only keeps what it is given."""

    def __init__(self, list_key: str) -> None:
        self.list_key = list_key
        self.packages: list[str] = []

    def enqueue(self, package: str) -> int:
        self.packages.append(package)
        return len(self.packages)


@cache
def _broker_of(cluster: str) -> Any:
    """Made once: it only puts things in, which any thread may, and that with each request."""
    return get_broker(cluster)


def wake(task: str, cluster: str) -> None:
    """Has a task without arguments run after the caller's transaction, once for all who say so meanwhile.

    No row tells of it: for a task that the pulse rings too, should nobody hear the word."""
    broker = _broker_of(cluster)
    if hasattr(broker, "wake"):
        broker.wake(task)
    else:
        async_task(task, cluster=cluster)


def package_of(task: str, cluster: str) -> str:
    """What a worker takes to run the task."""
    collector = _Collector(cluster)
    async_task(task, cluster=cluster, broker=collector)
    return collector.packages[0]


def ring_all(task: str, calls: Iterable[Sequence[int]], cluster: str) -> None:
    """As `async_task(task, *ids, cluster=cluster)` for each; one by one where the broker can do no other."""
    broker = _broker_of(cluster)
    collector = _Collector(broker.list_key)
    for ids in calls:
        async_task(task, *ids, cluster=cluster, broker=collector)
    if hasattr(broker, "enqueue_many"):
        broker.enqueue_many(collector.packages)
    else:
        for package in collector.packages:
            broker.enqueue(package)
