"""Why jobs wait, all of them at once: one statement reads the counts and the reasons, so that they add up.

It costs by the lots and tenants that have something waiting, never by what waits behind them. Jobs that wait
by themselves are counted by what their last look found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Max, Q

from dispatch import pulse
from dispatch.lifecycle import JobState
from dispatch.models import Bell, Job, WorkerBeat
from dispatch.waiting import (
    SET_ASIDE_BEYOND,
    STEP_OF,
    Code,
    Found,
    Heartbeat,
    Step,
    Verdict,
    code_alone,
    code_in_queue,
    verdict,
)

WAITING_STATES: Final = (JobState.QUEUED, JobState.DISPATCHING)
OLDEST_SHOWN: Final = 10
CLUSTERS_SEEN_FOR: Final = timedelta(hours=1)
# Of the oldest; no documents.
_TOLD: Final = ("public_id", "created_at", "dispatch_deadline_at", "public_model__slug", "customer__name")

# A line's count changes in the transaction in which the job enters or leaves it; so one statement sees every
# waiting job once: in its line, or by itself.
_WAITING = """
WITH parked AS (
    SELECT line.lot_id, tenant.held_back, sum(line.waiting) AS jobs
    FROM dispatch_line AS line JOIN dispatch_tenantqueue AS tenant ON tenant.id = line.tenant_id
    WHERE line.is_active GROUP BY 1, 2),
alone AS (
    SELECT public_model_id, waiting->>'outcome' AS outcome, waiting->>'signature' AS signature,
           next_action_at > %(aside)s AS is_aside, count(*) AS jobs, min(created_at) AS since,
           max(next_action_at) AS next_look_at, min(id) AS job_id
    FROM dispatch_job
    WHERE next_action_at IS NOT NULL AND line_id IS NULL AND NOT synchronous AND state = ANY(%(states)s)
    GROUP BY 1, 2, 3, 4),
seen AS (
    SELECT lot.public_model_id, parked.jobs, parked.held_back, lot.outcome, lot.looked_at,
           lot.waits_since_at AS since, NULL::timestamptz AS next_look_at, lot.round_id
    FROM parked JOIN dispatch_lot AS lot ON lot.id = parked.lot_id
    UNION ALL
    SELECT public_model_id, jobs, '', outcome, NULL, since, next_look_at,
           (SELECT id FROM dispatch_selectionround WHERE job_id = alone.job_id
            ORDER BY number DESC LIMIT 1)
    FROM alone)
SELECT model.slug, seen.jobs, seen.held_back, seen.outcome, seen.looked_at, seen.since, seen.next_look_at,
       kept.public_id,
       ARRAY(SELECT candidate.value->>'reason'
             FROM jsonb_each(kept.snapshot->'decision'->'candidates') AS candidate
             WHERE candidate.value->>'reason' IS NOT NULL)
FROM seen JOIN catalog_publicmodel AS model ON model.id = seen.public_model_id
LEFT JOIN dispatch_selectionround AS kept ON kept.id = seen.round_id
ORDER BY seen.jobs DESC, model.slug"""


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs of one model that wait for one reason, decided alike."""

    model: str  # slug
    code: Code
    step: Step
    jobs: int
    reasons: Mapping[str, int]  # routing's own codes, by how many candidates each took out; most first
    round: str  # public id of the evidence; blank: none was needed
    since: datetime | None  # since when nobody of them could start
    looked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ClusterLife:
    """The last signs of life of one cluster's workers on one host."""

    cluster: str
    host: str
    workers: int
    last_seen_at: datetime


@dataclass(frozen=True)
class Dispatcher:
    heartbeat: Heartbeat
    is_silent: bool

    @property
    def last_scan_at(self) -> datetime | None:
        return self.heartbeat.answered_at


@dataclass(frozen=True)
class WaitingNow:
    """The numbers of `by_code`, of `groups` and of each row of `by_model` add up to `waiting`.

    While the dispatcher is silent, they say what it saw last."""

    waiting: int
    verdict: Verdict
    by_code: Mapping[Code, int]  # most first
    by_model: Mapping[str, Mapping[Code, int]]
    groups: Sequence[Group]
    oldest: Sequence[Job]  # with their models and customers, of each what a list tells
    dispatcher: Dispatcher
    clusters: Sequence[ClusterLife]

    @property
    def oldest_since(self) -> datetime | None:
        return self.oldest[0].created_at if self.oldest else None


def waiting_now(now: datetime) -> WaitingNow:
    """Five queries, whatever waits."""
    dispatcher = dispatcher_now(now)
    groups = _groups_seen(dispatcher, now)
    by_code, by_model = _counted(groups)
    return WaitingNow(
        waiting=sum(by_code.values()),
        verdict=verdict(by_code, dispatcher.is_silent),
        by_code=by_code,
        by_model=by_model,
        groups=groups,
        oldest=_oldest(),
        dispatcher=dispatcher,
        clusters=_clusters(now),
    )


def verdict_now(now: datetime) -> Verdict:
    """The verdict alone, the same as that of `waiting_now`; two queries."""
    dispatcher = dispatcher_now(now)
    by_code, _by_model = _counted(_groups_seen(dispatcher, now))
    return verdict(by_code, dispatcher.is_silent)


def dispatcher_now(now: datetime) -> Dispatcher:
    bell = Bell.objects.filter(name="scan").first()
    heartbeat = Heartbeat(bell.rung_at, bell.answered_at) if bell else Heartbeat(None, None)
    silent = heartbeat.is_silent(now, pulse.SIGN_OF_LIFE_EVERY_S, pulse.NO_DISPATCHER_AFTER_S)
    return Dispatcher(heartbeat, silent)


def _groups_seen(dispatcher: Dispatcher, now: datetime) -> list[Group]:
    """A silent dispatcher saw them last at its last scan."""
    as_of = dispatcher.last_scan_at if dispatcher.is_silent else now
    return _groups(as_of or now)


def _groups(now: datetime) -> list[Group]:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, {"aside": now + SET_ASIDE_BEYOND, "states": list(WAITING_STATES)})
        return [_group(row, now) for row in cursor.fetchall()]


def _group(row: Sequence[Any], now: datetime) -> Group:
    model, jobs, held_back, outcome, looked_at, since, next_look_at, round_id, reasons = row
    if next_look_at is None:
        code = code_in_queue(Found(outcome, tuple(reasons), looked_at), held_back, now)
    else:
        found = Found(outcome, tuple(reasons)) if outcome else None
        code = code_alone(found, next_look_at, now)
    return Group(
        model=model,
        code=code,
        step=STEP_OF[code],
        jobs=int(jobs),
        reasons=dict(Counter(reasons).most_common()),
        round=round_id or "",
        since=since,
        looked_at=looked_at,
    )


def _counted(groups: Sequence[Group]) -> tuple[dict[Code, int], dict[str, Mapping[Code, int]]]:
    by_code: Counter[Code] = Counter()
    by_model: dict[str, Counter[Code]] = {}
    for group in groups:
        by_code[group.code] += group.jobs
        by_model.setdefault(group.model, Counter())[group.code] += group.jobs
    return dict(by_code.most_common()), {
        model: dict(counted.most_common()) for model, counted in sorted(by_model.items())
    }


def _oldest() -> list[Job]:
    """Of those that never began, and of those that wait for a second supply: there are few of these."""
    jobs = Job.objects.select_related("public_model", "customer").only(*_TOLD).filter(synchronous=False)
    queued = jobs.filter(state=JobState.QUEUED).order_by("created_at")[:OLDEST_SHOWN]
    second = jobs.filter(state=JobState.DISPATCHING, next_action_at__isnull=False)
    oldest = [*queued, *second.order_by("created_at")[:OLDEST_SHOWN]]
    return sorted(oldest, key=lambda job: job.created_at)[:OLDEST_SHOWN]


def _clusters(now: datetime) -> list[ClusterLife]:
    beats = (
        WorkerBeat.objects.values("cluster", "host")
        .annotate(
            workers=Count("pk", filter=Q(beat_at__gt=now - timedelta(minutes=1))), last_seen_at=Max("beat_at")
        )
        .filter(last_seen_at__gt=now - CLUSTERS_SEEN_FOR)
        .order_by("cluster", "host")
    )
    return [ClusterLife(**beat) for beat in beats]
