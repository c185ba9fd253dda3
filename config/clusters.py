"""A django-q2 cluster that can be relied on: one that stops when told, under a guard that replaces it.

A cluster can hang without a sign (a killed worker took the queue's lock with it) or live on without its head.
So it runs in a session of its own, below a guard that asks the database whether its bells are answered. The
guard forks it, with everything imported already: a replacement works at once, and the memory is shared."""

import gc
import logging
import multiprocessing
import os
import signal
import time
from datetime import datetime, timedelta
from multiprocessing.context import ForkProcess
from types import FrameType

from django.db import InterfaceError, OperationalError, connection, connections
from django.utils import timezone
from django_q.cluster import Cluster
from django_q.models import OrmQ

from config.broker import batches_taken
from config.children import kill_group, signal_when_parent_dies
from config.stopping import StopRequest
from dispatch import pulse, signs_of_life

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
# While no bell waits the database is asked this seldom, and a hung cluster is still noticed in time.
ASK_SELDOM_EVERY_S = 4.0
# A new cluster has as long to answer the bells that its predecessor left as any cluster has.
JUDGE_AFTER_S = float(pulse.UNANSWERED_AFTER_S)
_STEADY_AFTER_S = 30.0
_SLOWEST_RESTART_S = 10.0


class SafeCluster(Cluster):
    """The library's cluster, stopped by the first signal and deaf to the next: its handler takes a lock, and
    a second signal inside it would wait for that lock for ever."""

    def sig_handler(self, signum: int, frame: FrameType | None) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if self.sentinel is None:
            raise SystemExit(0)
        super().sig_handler(signum, frame)


class ClusterGuard:
    """Keeps the cluster at work that Q_CLUSTER_NAME names, and replaces it when it ends or hangs."""

    def __init__(self, cluster: str, request: StopRequest, grace_s: float) -> None:
        self.cluster = cluster
        self.request = request
        self.grace_s = grace_s
        self._restart_wait_s = 0.0
        self._ask_at_s = 0.0  # monotonic
        self._taken = Taken()

    def run(self) -> None:
        """Until asked to stop; then its tasks have `grace_s` to end before they are killed."""
        while not self.request.wait(self._restart_wait_s):
            head, started_s = self._fork(), time.monotonic()
            try:
                why = self._watch(head, started_s)
                if not why:
                    head.terminate()
                    head.join(self.grace_s)
            finally:
                _end(head)
            if why:
                logger.error("A worker cluster %s and is replaced", why, extra={"cluster": self.cluster})
                self._give_back()
                self._pace(time.monotonic() - started_s)

    def _fork(self) -> ForkProcess:
        connections.close_all()  # else both would speak through one socket
        gc.collect()
        gc.freeze()  # the collector writes into what it looks at: each process would get a copy of its own
        head = multiprocessing.get_context("fork").Process(
            target=_run_cluster, args=(self.request, os.getpid())
        )
        self._taken = Taken()
        head.start()
        return head

    def _watch(self, head: ForkProcess, started_s: float) -> str:
        """Why the cluster must be replaced; empty when we were asked to stop."""
        while not self.request.wait(LOOK_EVERY_S):
            if not head.is_alive():
                return f"ended with {head.exitcode}"
            if time.monotonic() - started_s > JUDGE_AFTER_S and self._hangs():
                return "answers no bell"
        return ""

    def _hangs(self) -> bool:
        try:
            return self._leaves_bells_unanswered() or self._taken.in_vain(self.cluster, timezone.now())
        except (OperationalError, InterfaceError) as error:
            # A database that doesn't answer says nothing about the cluster.
            self._lost_database("it cannot look after its cluster", error)
            self._taken = Taken()
            return False

    def _leaves_bells_unanswered(self) -> bool:
        if time.monotonic() < self._ask_at_s:
            return False
        now = timezone.now()
        waits_s = pulse.unanswered_s(self.cluster, now)
        self._ask_at_s = 0.0 if waits_s else time.monotonic() + ASK_SELDOM_EVERY_S
        return pulse.is_hung(self.cluster, waits_s, now)

    def _give_back(self) -> None:
        """Lets the next cluster take at once what the last one had taken and not finished. Should another
        host's cluster be at work on one of these, the task's claim decides."""
        now = timezone.now()
        try:
            OrmQ.objects.filter(key=self.cluster, lock__gt=now).update(lock=now)
        except (OperationalError, InterfaceError) as error:
            self._lost_database("unfinished tasks wait for their retry", error)

    def _lost_database(self, what_follows: str, error: Exception) -> None:
        logger.warning(
            "The guard lost the database, %s: %s", what_follows, error, extra={"cluster": self.cluster}
        )
        connection.close()

    def _pace(self, lived_s: float) -> None:
        # The first replacement comes at once; a cluster that can't live is tried more and more slowly.
        slower_s = min(max(1.0, self._restart_wait_s * 2), _SLOWEST_RESTART_S)
        self._restart_wait_s = 0.0 if lived_s > _STEADY_AFTER_S else slower_s


class Taken:
    """What this host's cluster took from the queue: where clusters of other hosts answer the bells, one that
    takes tasks and works at none of them is told by this alone."""

    def __init__(self) -> None:
        self._batches = batches_taken.value
        self._since: datetime | None = None  # the first batch that nobody was seen at work for

    def in_vain(self, cluster: str, now: datetime) -> bool:
        """Whether a batch was taken a while ago and no worker has shown a sign of life from then on.

        Asked each second; the database is asked only about a batch that is old enough."""
        if self._since is None:
            if batches_taken.value != self._batches:
                self._since = now
        elif now - self._since > timedelta(seconds=pulse.UNANSWERED_AFTER_S):
            # A worker that showed a sign just before it took the task gives none for it.
            before = timedelta(seconds=signs_of_life.EVERY_S + 2 * LOOK_EVERY_S)
            if pulse.is_silent(cluster, signs_of_life.HOST, self._since - before):
                return True
            self._batches, self._since = batches_taken.value, None
        return False


def _run_cluster(request: StopRequest, guard: int) -> None:
    """The head of the cluster, until SIGTERM."""
    os.setsid()
    request.leave_to_parent()
    # Without their head the processes of a cluster go on unwatched: each dies with the one that forked it.
    os.register_at_fork(after_in_child=_die_with_parent)
    _die_with_parent()
    if os.getppid() != guard:
        return
    cluster = SafeCluster()
    cluster.start()
    cluster.sentinel.join()


def _end(head: ForkProcess) -> None:
    head.kill()  # should it not lead its group yet
    kill_group(head.pid or 0)
    head.join()


def _die_with_parent() -> None:
    signal_when_parent_dies(signal.SIGKILL)
