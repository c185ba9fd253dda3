"""That a worker works: noted when a task starts and while it lasts. A hung or killed one falls silent."""

import functools
import logging
import os
import socket
import threading
import time
from collections.abc import Callable

from django.db import Error, connection
from django.utils.timezone import now

from dispatch.models import WorkerBeat

logger = logging.getLogger(__name__)
EVERY_S = 2
HOST = socket.gethostname()[:60]
_shown: dict[int, float] = {}  # by process id, monotonic: a forked worker does not inherit its parent's signs


def at_work[**P](cluster: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorates a task: one write every two seconds at most, however many tasks a worker runs."""

    def decorate(task: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(task)
        def watched(*args: P.args, **kwargs: P.kwargs) -> None:
            if time.monotonic() - _shown.get(os.getpid(), 0) > EVERY_S:
                _show(cluster)
            done = threading.Event()
            beating = threading.Thread(target=_beat, args=(cluster, done), daemon=True)
            beating.start()
            try:
                task(*args, **kwargs)
            finally:
                done.set()
                beating.join()

        return watched

    return decorate


def _beat(cluster: str, done: threading.Event) -> None:
    try:
        while not done.wait(EVERY_S):
            try:
                _show(cluster)
            except Error:
                # It may be back at the next beat. If not, this worker is silent for as long, which then means
                # what it says: it does not get on.
                logger.warning("A worker could not show that it works", exc_info=True)
                connection.close()
    finally:
        connection.close()


def _show(cluster: str) -> None:
    _shown[os.getpid()] = time.monotonic()
    WorkerBeat.objects.bulk_create(
        [WorkerBeat(cluster=cluster, host=HOST, pid=os.getpid(), beat_at=now())],
        update_conflicts=True,
        unique_fields=["host", "pid"],
        update_fields=["cluster", "beat_at"],
    )
