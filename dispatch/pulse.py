"""What the pulse does each second: ring the recurring tasks, and tell which cluster no longer answers.

A bell rings again only once it was answered, so a slow cluster never collects a heap of them. django-q2's
own schedule can't ring below a minute, and a cluster can hang without dying; hence a small process apart."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django_q.tasks import async_task

from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, Bell


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
    "housekeeping": Recurring("control", "dispatch.tasks.housekeeping", 60),
}
UNANSWERED_AFTER_S = 6
# A bell that is lost (its queue row deleted, its worker killed) is rung again after this long.
RING_AGAIN_AFTER_S = 30


def beat(now: datetime) -> list[str]:
    """Rings every bell that is due and returns their names. The pulse calls this once a second."""
    return [name for name, bell in BELLS.items() if _ring_if_due(name, bell, now)]


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


def answer(name: str, now: datetime) -> None:
    """The first act of every recurring task: its cluster works."""
    Bell.objects.filter(name=name).update(answered_at=now)


def is_hung(cluster: str, now: datetime) -> bool:
    """Whether bells wait although the cluster has a worker free to answer them.

    A cluster whose workers are all at work for a slow provider is busy, not hung: each attempt that is
    being submitted or fetched right now occupies one worker."""
    late = now - timedelta(seconds=UNANSWERED_AFTER_S)
    unanswered = Bell.objects.filter(
        Q(answered_at=None) | Q(answered_at__lt=F("rung_at")), cluster=cluster, rung_at__lte=late
    )
    return unanswered.exists() and _busy_workers(cluster, now) < workers_of(cluster)


def workers_of(cluster: str) -> int:
    """How many workers the cluster is configured with."""
    alternatives = settings.Q_CLUSTER["ALT_CLUSTERS"]
    return int(alternatives.get(cluster, settings.Q_CLUSTER)["workers"])


def _busy_workers(cluster: str, now: datetime) -> int:
    if cluster != "traffic":
        return 0
    return (
        Attempt.objects.filter(
            state=AttemptState.SUBMITTING,
            request_started_at__gt=now - timedelta(seconds=settings.PROVIDER_DEADLINE_S),
        ).count()
        + Attempt.objects.filter(state=AttemptState.FETCHING, next_look_at__gt=now).count()
    )
