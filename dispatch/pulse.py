"""What the pulse does each second: ring the recurring tasks, and tell which cluster no longer answers.

A bell rings when there is something due for it, or as a sign of life, and again only once it was answered, so
a slow cluster never collects a heap of them. django-q2's own schedule can't ring below half a minute, and a
cluster can hang without dying: hence a process apart."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django.db import connection, transaction
from django.db.models import Case, Exists, F, Min, Q, When
from django_q.tasks import async_task

from dispatch import due
from dispatch.models import Bell, WorkerBeat
from dispatch.services import raise_alerts
from dispatch.services.follow_clock import follow_clock
from health.models import Alert

# An idle cluster is asked for a sign of life so often.
SIGN_OF_LIFE_EVERY_S = 10
# Should a condition of `dispatch.due` miss what its task would find.
LOOK_ALL_THE_SAME_EVERY_S = 300
UNANSWERED_AFTER_S = 6
# A bell that is lost (its queue row deleted, its worker killed) is rung again after this long.
RING_AGAIN_AFTER_S = 30
NO_DISPATCHER_AFTER_S = 10
# Two hosts' clocks may be apart by as much; a larger step is a clock that was put back.
CLOCKS_APART_S = 120


@dataclass(frozen=True)
class Recurring:
    """A task that must run on a cluster: every `every_s` seconds while something is due, and else seldom."""

    cluster: str
    task: str
    every_s: float
    when: Callable[[datetime], due.Due] | None = None  # something is due; None: always
    at_least_every_s: float = LOOK_ALL_THE_SAME_EVERY_S


BELLS = {
    "scan": Recurring("control", "dispatch.tasks.scan", 1, due.scan, SIGN_OF_LIFE_EVERY_S),
    "reconcile": Recurring("control", "dispatch.tasks.reconcile", 1, due.reconcile),
    "poll": Recurring("traffic", "dispatch.tasks.poll", 1, due.poll, SIGN_OF_LIFE_EVERY_S),
    "begin_recoveries": Recurring("traffic", "dispatch.tasks.begin_recoveries", 2, due.begin_recoveries),
    "deliver_alerts": Recurring("traffic", "dispatch.tasks.deliver_alerts", 3, due.deliver_alerts),
    "housekeeping": Recurring("control", "dispatch.tasks.housekeeping", 60),
    "sweep_incoming": Recurring("control", "dispatch.tasks.sweep_incoming", 3600),
    "audit_replays": Recurring("traffic", "dispatch.tasks.audit_replays", 86_400),
}


@dataclass(frozen=True)
class Seen:
    """A bell as one look found it."""

    rung_at: datetime
    answered_at: datetime | None
    is_due: bool

    @property
    def waits(self) -> bool:
        """For an answer."""
        return self.answered_at is None or self.answered_at < self.rung_at


_ANY_MOMENT = datetime.max.replace(tzinfo=UTC)


def beat(now: datetime) -> list[str]:
    """Rings every bell that is to ring and returns their names. The pulse calls this once a second: while
    nothing is due, it is one statement."""
    seen, told = _look(now)
    put_back = _put_back(seen.values(), now)
    if put_back:
        follow_clock(put_back, now)
        seen, told = _look(now)
    rung = [name for name, bell in BELLS.items() if name not in seen or is_to_ring(bell, seen[name], now)]
    if rung:
        _ring(rung, now)
    _watch_dispatcher(seen.get("scan"), "scan" in rung, told, now)
    return rung


def _put_back(seen: Iterable[Seen], now: datetime) -> timedelta | None:
    """By how much, told by the latest time at which a bell was ever rung."""
    ahead = max((bell.rung_at - now for bell in seen), default=timedelta(0))
    return ahead if ahead > timedelta(seconds=CLOCKS_APART_S) else None


def is_to_ring(bell: Recurring, seen: Seen, now: datetime) -> bool:
    quiet_s = (now - seen.rung_at).total_seconds()
    if quiet_s < 0:
        return True  # by a clock that is ahead of ours
    if seen.waits:
        return quiet_s >= max(RING_AGAIN_AFTER_S, bell.every_s)
    # A beat that comes a little early must not leave a whole one out.
    return quiet_s >= 0.9 * (bell.every_s if seen.is_due else bell.at_least_every_s)


def _look(now: datetime) -> tuple[dict[str, Seen], bool]:
    """The bells by name, and whether operators are told of a missing dispatcher."""
    sql, parameters = _question()
    with connection.cursor() as cursor:
        cursor.execute(sql, [now if value == _ANY_MOMENT else value for value in parameters])
        rows = cursor.fetchall()
    return {row[0]: Seen(*row[1:4]) for row in rows}, any(row[4] for row in rows)


@cache
def _question() -> tuple[str, tuple[Any, ...]]:
    """Written once, about any moment: the ORM takes longer over it than PostgreSQL over the answer."""
    conditions = [
        When(Q(bell.when(_ANY_MOMENT), name=name) if bell.when else Q(name=name), then=True)
        for name, bell in BELLS.items()
    ]
    told = Alert.objects.unresolved().filter(dedupe_key=raise_alerts.NO_DISPATCHER)
    bells = Bell.objects.annotate(is_due=Case(*conditions, default=False), told=Exists(told))
    rows = bells.values_list("name", "rung_at", "answered_at", "is_due", "told")
    sql, parameters = rows.query.sql_with_params()
    return sql, tuple(parameters)


def _ring(names: Collection[str], now: datetime) -> None:
    bells = [Bell(name=name, cluster=BELLS[name].cluster, rung_at=now) for name in names]
    with transaction.atomic():
        Bell.objects.bulk_create(
            bells, update_conflicts=True, unique_fields=["name"], update_fields=["cluster", "rung_at"]
        )
        for bell in bells:
            async_task(BELLS[bell.name].task, cluster=bell.cluster)


def _watch_dispatcher(scan: Seen | None, rung: bool, told: bool, now: datetime) -> None:
    """A scan that was rung and waits this long was not answered by anybody.

    A pulse that begins again after a pause has rung a moment ago, and so raises nothing."""
    if scan is None:
        return
    if scan.waits:
        if not rung and scan.rung_at <= now - timedelta(seconds=NO_DISPATCHER_AFTER_S):
            raise_alerts.no_dispatcher(BELLS["scan"].cluster, scan.answered_at, now)
    elif told:
        raise_alerts.dispatcher_is_back(now)


def answer(name: str, now: datetime) -> None:
    """The first act of every recurring task: its cluster works."""
    Bell.objects.filter(name=name).update(answered_at=now)


def unanswered_s(cluster: str, now: datetime) -> float:
    """How long the cluster's longest waiting bell has waited; 0 where all were answered."""
    waiting = Bell.objects.filter(Q(answered_at=None) | Q(answered_at__lt=F("rung_at")), cluster=cluster)
    since = waiting.aggregate(since=Min("rung_at"))["since"]
    return 0.0 if since is None else (now - since).total_seconds()


def is_hung(cluster: str, waits_s: float, now: datetime) -> bool:
    """Whether a bell has waited too long and no worker of the cluster has shown any sign of life since.

    A cluster whose workers are all at work for a slow provider, or that works through a heap of short tasks,
    leaves bells waiting too, but it is not silent."""
    since = now - timedelta(seconds=UNANSWERED_AFTER_S)
    return waits_s >= UNANSWERED_AFTER_S and not _works(cluster, since)


def is_silent(cluster: str, host: str, since: datetime) -> bool:
    """Whether no worker of the cluster on this host has shown a sign of life since then."""
    return not _works(cluster, since, host=host)


def _works(cluster: str, since: datetime, **where: str) -> bool:
    return WorkerBeat.objects.filter(cluster=cluster, beat_at__gt=since, **where).exists()
