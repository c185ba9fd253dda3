"""What the pulse does each second: ring the recurring tasks, and tell which cluster no longer answers.

A bell rings again only once it was answered, so a slow cluster never collects a heap of them. django-q2's
own schedule can't ring below half a minute, and a cluster can hang without dying: hence a process apart."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django_q.tasks import async_task

from dispatch.models import Bell, WorkerBeat
from dispatch.services import raise_alerts


@dataclass(frozen=True)
class Recurring:
    """A task that must run every `every_s` seconds on a cluster."""

    cluster: str
    task: str
    every_s: float


BELLS = {
    "scan": Recurring("control", "dispatch.tasks.scan", 1),
    "reconcile": Recurring("control", "dispatch.tasks.reconcile", 1),
    "poll": Recurring("traffic", "dispatch.tasks.poll", 1),
    "begin_recoveries": Recurring("traffic", "dispatch.tasks.begin_recoveries", 2),
    "deliver_alerts": Recurring("traffic", "dispatch.tasks.deliver_alerts", 3),
    "housekeeping": Recurring("control", "dispatch.tasks.housekeeping", 60),
    "sweep_incoming": Recurring("control", "dispatch.tasks.sweep_incoming", 3600),
    "audit_replays": Recurring("traffic", "dispatch.tasks.audit_replays", 86_400),
}
UNANSWERED_AFTER_S = 6
# A bell that is lost (its queue row deleted, its worker killed) is rung again after this long.
RING_AGAIN_AFTER_S = 30
NO_DISPATCHER_AFTER_S = 10


def beat(now: datetime) -> list[str]:
    """Rings every bell that is due and returns their names. The pulse calls this once a second."""
    rung = [name for name, bell in BELLS.items() if _ring_if_due(name, bell, now)]
    _watch_dispatcher(now)
    return rung


def _ring_if_due(name: str, bell: Recurring, now: datetime) -> bool:
    due = now - timedelta(seconds=bell.every_s * 0.9)
    lost = now - timedelta(seconds=max(RING_AGAIN_AFTER_S, bell.every_s))
    with transaction.atomic():
        Bell.objects.get_or_create(
            name=name, defaults={"cluster": bell.cluster, "rung_at": datetime.fromtimestamp(0, now.tzinfo)}
        )
        rang = Bell.objects.filter(
            Q(rung_at__lte=due, answered_at__gte=F("rung_at")) | Q(rung_at__lte=lost), name=name
        ).update(rung_at=now)
        if rang:
            async_task(bell.task, cluster=bell.cluster)
    return bool(rang)


def _watch_dispatcher(now: datetime) -> None:
    """Looked at after the bells are rung: what waits longer now was not answered by anybody.

    A pulse that begins again after a pause has rung a moment ago, and so raises nothing."""
    scan = Bell.objects.get(name="scan")
    late = now - timedelta(seconds=NO_DISPATCHER_AFTER_S)
    if scan.answered_at is not None and scan.answered_at > late:
        raise_alerts.dispatcher_is_back(now)
    elif scan.rung_at <= late:
        raise_alerts.no_dispatcher(scan, now)


def answer(name: str, now: datetime) -> None:
    """The first act of every recurring task: its cluster works."""
    Bell.objects.filter(name=name).update(answered_at=now)


def is_hung(cluster: str, now: datetime) -> bool:
    """Whether bells wait while no worker of the cluster has shown any sign of life for as long.

    A cluster whose workers are all at work for a slow provider, or that works through a heap of short tasks,
    leaves bells waiting too, but it is not silent."""
    since = now - timedelta(seconds=UNANSWERED_AFTER_S)
    unanswered = Bell.objects.filter(
        Q(answered_at=None) | Q(answered_at__lt=F("rung_at")), cluster=cluster, rung_at__lte=since
    )
    return unanswered.exists() and not WorkerBeat.objects.filter(cluster=cluster, beat_at__gt=since).exists()
