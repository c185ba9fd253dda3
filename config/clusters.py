"""A django-q2 cluster that can be relied on: one that stops when told, and a guard that replaces it.

A cluster can hang without a sign (a killed worker took the queue's lock with it) or live on without its head.
So it runs in a session of its own, below a guard that asks the database whether its bells are answered."""

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from types import FrameType

from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from django_q.cluster import Cluster
from django_q.models import OrmQ

from config.children import die_with_parent, signal_when_parent_dies, stop_group, sweep_group
from config.stopping import StopRequest
from dispatch import pulse

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
# A new cluster imports the whole of Django before it can answer.
JUDGE_AFTER_S = 8.0
_STEADY_AFTER_S = 10.0
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


def run_cluster() -> None:
    """Runs the cluster that Q_CLUSTER_NAME names in this process, until SIGTERM."""
    # Without their head its processes would go on unwatched: each dies with the one that forked it.
    os.register_at_fork(after_in_child=lambda: signal_when_parent_dies(signal.SIGKILL))
    cluster = SafeCluster()
    cluster.start()
    cluster.sentinel.join()


def look(cluster: str) -> bool:
    """Whether the cluster hangs. A database that doesn't answer says nothing about it."""
    try:
        return pulse.is_hung(cluster, timezone.now())
    except (OperationalError, InterfaceError) as error:
        logger.warning("The guard cannot look after its cluster: %s", error, extra={"cluster": cluster})
        connection.close()
        return False


def give_back(cluster: str) -> None:
    """Lets the next cluster take at once what the last one had taken and not finished. Should another host's
    cluster be at work on one of these, the task's claim decides."""
    try:
        now = timezone.now()
        OrmQ.objects.filter(key=cluster, lock__gt=now).update(lock=now)
    except (OperationalError, InterfaceError) as error:
        logger.warning("Unfinished tasks wait for their retry: %s", error, extra={"cluster": cluster})
        connection.close()


class ClusterGuard:
    """Keeps one cluster process at work, and replaces it when it ends or hangs."""

    def __init__(
        self,
        cluster: str,
        command: Sequence[str],
        request: StopRequest,
        *,
        grace_s: float,
        is_hung: Callable[[str], bool] = look,
        give_back: Callable[[str], None] = give_back,
    ) -> None:
        self.cluster = cluster
        self.command = command
        self.request = request
        self.grace_s = grace_s
        self.is_hung = is_hung
        self.give_back = give_back
        self._restart_wait_s = 0.0

    def run(self) -> None:
        """Until asked to stop; then its tasks have `grace_s` to end before they are killed."""
        while not self.request.wait(self._restart_wait_s):
            process, started_s = self._spawn(), time.monotonic()
            why = self._watch(process, started_s)
            if not why:
                stop_group(process, signal.SIGTERM, self.grace_s)
                return
            sweep_group(process)
            self.give_back(self.cluster)
            logger.error("A worker cluster %s and is replaced", why, extra={"cluster": self.cluster})
            self._pace(time.monotonic() - started_s)

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command,
            env={**os.environ, "Q_CLUSTER_NAME": self.cluster},
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )

    def _watch(self, process: subprocess.Popen[bytes], started_s: float) -> str:
        """Why the cluster must be replaced; empty when we were asked to stop."""
        while not self.request.wait(LOOK_EVERY_S):
            if process.poll() is not None:
                return f"ended with {process.returncode}"
            if time.monotonic() - started_s > JUDGE_AFTER_S and self.is_hung(self.cluster):
                return "answers no bell"
        return ""

    def _pace(self, lived_s: float) -> None:
        # The first replacement comes at once; a cluster that can't live is tried more and more slowly.
        again = max(1.0, self._restart_wait_s * 2)
        self._restart_wait_s = 0.0 if lived_s > _STEADY_AFTER_S else min(again, _SLOWEST_RESTART_S)
