"""Why one job waits: what blocks it, who takes the slots, what is known of the end, and its place.

For operators, with names; `customer_queue` is what its customer may know of the same."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.db.models import Q

from catalog.models import CapacityGroup
from dispatch.models import CapacityLease, Job, LeaseState, Line, SelectionRound
from dispatch.queries.waiting import WAITING_STATES, dispatcher_now
from dispatch.routing.snapshot import bindings_by_key
from dispatch.waiting import (
    STEP_OF,
    Clocks,
    Code,
    CustomerQueue,
    Found,
    Step,
    clocks,
    code_alone,
    code_in_queue,
    place_in_turn,
)
from health.models import ChannelHealth, GroupPressure, SupplyHealth

PLACES_COUNTED: Final = 10_000  # jobs of a customer and model; with more of them no place is told
SLOTS_SHOWN: Final = 50
_FULL: Final = frozenset({"capacity_full", "unknown_slots_full"})

# Which reasons' ends tell when the first of what blocks may be over.
_ENDING: Final[Mapping[Code, frozenset[str]]] = {
    Code.PROVIDER_PAUSE: frozenset({"not_before"}),
    Code.UNHEALTHY: frozenset({"channel_circuit_open", "supply_circuit_open"}),
    Code.CONTENT_COOLDOWN: frozenset({"refusal_cooldown"}),
}


@dataclass(frozen=True, slots=True)
class Blocked:
    """A candidate that can't take the job, as its last look recorded it."""

    supply: str  # slugs
    channel: str
    tier: str
    reason: str  # of dispatch.routing.reasons
    details: str
    ends_at: (
        datetime | None
    )  # when the pause, the cooldown of the circuit or of the content ends; None: unknown


@dataclass(frozen=True, slots=True)
class Taken:
    """A slot of a full candidate and who holds it."""

    attempt: str  # public ids
    job: str
    supply: str
    channel: str
    state: str  # of the attempt
    since: datetime
    is_unknown: bool
    unknown_until: datetime | None  # when it is decided or given back at the latest


@dataclass(frozen=True)
class JobWaiting:
    """Times are absolute; None where nothing is known."""

    code: Code
    step: Step
    until: datetime | None  # nothing changes before, as far as is known
    blocked: Sequence[Blocked]
    taken: Sequence[Taken]  # oldest first, at most SLOTS_SHOWN
    next_probe_at: datetime | None  # of the first circuit among its candidates
    place: int | None  # among its customer's jobs for the model in its service class; 1 = next
    deadline_at: datetime
    next_look_at: datetime | None  # None: at each scan
    looked_at: datetime | None
    round: str  # public id of the evidence

    @property
    def unknown(self) -> Sequence[Taken]:
        return [slot for slot in self.taken if slot.is_unknown]


def is_waiting(job: Job) -> bool:
    """For a selection: in the fair queue, or until it is looked at by itself."""
    looked_at = job.line_id is not None or job.next_action_at is not None
    return looked_at and not job.synchronous and job.state in WAITING_STATES


def waiting_of(job: Job, now: datetime) -> JobWaiting | None:
    """None for a job that waits for no selection."""
    if not is_waiting(job):
        return None
    evidence = _evidence(job)
    code = _code(job, evidence, now)
    if dispatcher_now(now).is_silent:
        code = Code.DISPATCHER_SILENT
    blocked = _blocked(evidence)
    taken = _taken(blocked)
    return JobWaiting(
        code=code,
        step=STEP_OF[code],
        until=_until(code, job, blocked, taken),
        blocked=blocked,
        taken=taken,
        next_probe_at=_first(each.ends_at for each in blocked if each.reason.endswith("circuit_open")),
        place=place_of(job),
        deadline_at=job.dispatch_deadline_at,
        next_look_at=job.next_action_at,
        looked_at=job.line.lot.looked_at if job.line else None,
        round=evidence.public_id if evidence else "",
    )


def clocks_of(job: Job, now: datetime) -> Clocks:
    return clocks(job.created_at, job.started_at, job.finished_at, now)


def customer_queue(job: Job, now: datetime) -> CustomerQueue | None:
    """Without anybody's name; a dispatcher that is silent is no customer's business."""
    if not is_waiting(job):
        return None
    evidence = _evidence(job)
    code = _code(job, evidence, now)
    blocked = _blocked(evidence) if code is Code.CONTENT_COOLDOWN else []
    return CustomerQueue(code, _until(code, job, blocked, []), place_of(job))


def place_of(job: Job) -> int | None:
    """1 = next of its customer's jobs for this model in this service class; None: it stands in no queue."""
    if job.line is None or job.queue_at is None:
        return None
    tenant = job.line.tenant
    lines = Line.objects.filter(
        tenant=tenant, is_active=True, lot__public_model=job.line.lot.public_model_id
    ).values_list("pk", "waiting")
    if sum(waiting for _, waiting in lines) > PLACES_COUNTED:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT end_user, count(*), count(*) FILTER (WHERE (queue_at, id) < (%(at)s, %(job)s))
               FROM dispatch_job WHERE line_id = ANY(%(lines)s) GROUP BY end_user""",
            {"at": job.queue_at, "job": job.pk, "lines": [line for line, _ in lines]},
        )
        rows = cursor.fetchall()
    before = {user: earlier for user, _, earlier in rows}
    waiting = {user: number for user, number, _ in rows}
    return place_in_turn(job.end_user, before.get(job.end_user, 0), waiting, tenant.last_end_user)


def _evidence(job: Job) -> SelectionRound | None:
    if job.line is not None:
        return job.line.lot.round
    return job.rounds.order_by("-number").first() if job.waiting else None


def _code(job: Job, evidence: SelectionRound | None, now: datetime) -> Code:
    if now >= job.dispatch_deadline_at:
        return Code.DEADLINE_PASSED
    reasons = tuple(_reasons(evidence))
    if job.line is not None:
        lot = job.line.lot
        return code_in_queue(Found(lot.outcome, reasons, lot.looked_at), job.line.tenant.held_back, now)
    found = Found(job.waiting["outcome"], reasons) if job.waiting else None
    return code_alone(found, job.next_action_at or now, now)


def _reasons(evidence: SelectionRound | None) -> list[str]:
    candidates = evidence.snapshot["decision"]["candidates"].values() if evidence else ()
    return [each["reason"] for each in candidates if each["reason"] is not None]


def _blocked(evidence: SelectionRound | None) -> list[Blocked]:
    if evidence is None:
        return []
    snapshot = evidence.snapshot
    bindings, findings = bindings_by_key(snapshot), snapshot["evidence"]["findings"]
    ends = _Ends.of(snapshot)
    found = []
    for key, each in snapshot["decision"]["candidates"].items():
        if each["reason"] is None:
            continue
        supply = bindings[key]["supply"]
        channel = snapshot["supplies"][supply]["channel"]
        found.append(
            Blocked(
                supply=supply,
                channel=channel,
                tier=bindings[key]["tier"],
                reason=each["reason"],
                details=findings[key].get("details", ""),
                ends_at=ends.at(each["reason"], supply, channel),
            )
        )
    return found


@dataclass(frozen=True)
class _Ends:
    """When what takes candidates out will be over, as the rows say now."""

    channels: Mapping[str, ChannelHealth]
    supplies: Mapping[str, SupplyHealth]
    groups: Mapping[str, datetime | None]  # by the slugs of their channels
    refusals: Mapping[str, Mapping[str, Any]]  # as recorded: nothing moves their end but another refusal

    @classmethod
    def of(cls, snapshot: Mapping[str, Any]) -> "_Ends":
        channels = ChannelHealth.objects.filter(channel__slug__in=list(snapshot["channels"]))
        supplies = SupplyHealth.objects.filter(supply__slug__in=list(snapshot["supplies"]))
        pressures = GroupPressure.objects.filter(group__channels__slug__in=list(snapshot["channels"]))
        return cls(
            {health.channel.slug: health for health in channels.select_related("channel")},
            {health.supply.slug: health for health in supplies.select_related("supply")},
            dict(pressures.values_list("group__channels__slug", "not_before")),
            snapshot["refusals"],
        )

    def at(self, reason: str, supply: str, channel: str) -> datetime | None:
        circuits = (self.channels.get(channel), self.supplies.get(supply))
        match reason:
            case "refusal_cooldown":
                told = self.refusals.get(supply, {}).get("next_probe_at")
                return datetime.fromisoformat(told) if told else None
            case "channel_circuit_open":
                return _first(row.cooldown_until for row in circuits[:1] if row)
            case "supply_circuit_open":
                return _first(row.cooldown_until for row in circuits[1:] if row)
            case "not_before":
                pauses = [self.groups.get(channel), *(row.not_before for row in circuits if row)]
                return max((at for at in pauses if at is not None), default=None)
        return None


def _taken(blocked: Sequence[Blocked]) -> list[Taken]:
    full = [each for each in blocked if each.reason in _FULL]
    if not full:
        return []
    channels = {each.channel for each in full}
    there = Q(supply__slug__in={each.supply for each in full}) | Q(channel__slug__in=channels)
    groups = CapacityGroup.objects.filter(channels__slug__in=channels)
    leases = (
        CapacityLease.objects.filter(there | Q(group__in=groups), released_at=None)
        .select_related("attempt__job", "supply", "channel")
        .order_by("granted_at", "id")
    )
    return [
        Taken(
            attempt=lease.attempt.public_id,
            job=lease.attempt.job.public_id,
            supply=lease.supply.slug,
            channel=lease.channel.slug,
            state=lease.attempt.state,
            since=lease.granted_at,
            is_unknown=lease.state == LeaseState.UNKNOWN,
            unknown_until=_unknown_until(lease),
        )
        for lease in leases[:SLOTS_SHOWN]
    ]


def _unknown_until(lease: CapacityLease) -> datetime | None:
    if lease.state != LeaseState.UNKNOWN:
        return None
    return lease.quarantine_until or lease.attempt.uncertain_deadline_at


def _until(code: Code, job: Job, blocked: Sequence[Blocked], taken: Sequence[Taken]) -> datetime | None:
    if code is Code.SET_ASIDE:
        return job.next_action_at
    if code is Code.UNKNOWN_SLOTS_FULL:
        return _first(slot.unknown_until for slot in taken)
    ending = _ENDING.get(code, frozenset())
    return _first(each.ends_at for each in blocked if each.reason in ending)


def _first(times: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in times if at is not None), default=None)
