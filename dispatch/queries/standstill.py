"""Why nothing is moving: the chain from arriving jobs to free slots as six checks, and who holds them up."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from catalog.models import SupplyBinding
from dispatch.held_channels import held_until
from dispatch.models import Attempt, Job, Maintenance
from dispatch.queries.counting import capped
from dispatch.queries.off_air import OffAir, off_air
from dispatch.queries.places import SupplyNow, supplies_now
from dispatch.queries.waiting import Group, WaitingNow, waiting_now
from dispatch.waiting import Code, Step

CHECKS: Final = ("arriving", "dispatcher", "switches", "published", "capability", "health")
HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Check:
    """`passed` None: it cannot be told. `blocked`: jobs that wait because of it."""

    name: str
    passed: bool | None
    blocked: int = 0


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Of the last hour; counts are capped."""

    arrived: int
    started: int
    last_at: datetime | None  # ever


@dataclass(frozen=True, slots=True)
class Cause:
    """A place that holds up the models of one reason, as it stands now."""

    supply: SupplyNow
    is_channels: bool  # it is the channel's own state, and so that of all of its supplies


@dataclass(frozen=True, slots=True)
class Reason:
    """All jobs that wait for one first reason."""

    code: Code
    step: Step
    jobs: int
    share: float  # of all that wait
    models: Sequence[tuple[str, int]]  # slug and jobs, most first
    since: datetime | None
    causes: Sequence[Cause]


@dataclass(frozen=True)
class Standstill:
    waiting: WaitingNow
    checks: Sequence[Check]
    arrivals: Arrivals
    reasons: Sequence[Reason]
    all_reasons: Sequence[tuple[str, int]]  # routing's codes, by the jobs one of whose candidates it took out
    closed: Sequence[OffAir]
    held: Sequence[str]  # channels that get nothing new while outcomes are unknown
    maintenances: Sequence[Maintenance]
    last_pick_at: datetime | None  # when a supply was last selected for somebody

    @property
    def codes(self) -> list[Code]:
        """Columns of the matrix."""
        return [reason.code for reason in self.reasons]


def standstill(now: datetime) -> Standstill:
    """A fixed number of queries, whatever waits."""
    waiting = waiting_now(now)
    supplies = {each.row.slug: each for each in supplies_now()}
    users = _users(waiting.by_model)
    reasons = [
        _reason(code, jobs, waiting, users, supplies) for code, jobs in waiting.by_code.items() if jobs
    ]
    arrivals, closed, held = _arrivals(now), off_air(), sorted(held_until(now))
    kept = {each.maintenance.pk: each.maintenance for each in supplies.values() if each.maintenance}
    return Standstill(
        waiting=waiting,
        checks=_checks(waiting, arrivals, held),
        arrivals=arrivals,
        reasons=reasons,
        all_reasons=_all_reasons(waiting.groups),
        closed=closed,
        held=held,
        maintenances=list(kept.values()),
        last_pick_at=Attempt.objects.order_by("-id").values_list("created_at", flat=True).first(),
    )


def _arrivals(now: datetime) -> Arrivals:
    recent = Job.objects.filter(created_at__gt=now - HOUR)
    # What began lately came lately: a job waits at most for its deadline.
    began = Job.objects.filter(created_at__gt=now - 2 * HOUR, started_at__gt=now - HOUR)
    last = Job.objects.order_by("-created_at", "-id").values_list("created_at", flat=True).first()
    return Arrivals(capped(recent), capped(began), last)


def _checks(waiting: WaitingNow, arrivals: Arrivals, held: Sequence[str]) -> list[Check]:
    by_step: dict[Step, int] = defaultdict(int)
    for group in waiting.groups:
        by_step[group.step] += group.jobs
    off = waiting.by_code.get(Code.OUT_OF_SERVICE, 0)
    frozen = waiting.by_code.get(Code.CONTENT_FROZEN, 0)
    dispatcher = waiting.dispatcher
    is_alive = None if dispatcher.last_scan_at is None else not dispatcher.is_silent
    switched = off + frozen
    capability = by_step[Step.CAPABILITY] - switched
    blocked = by_step[Step.HEALTH_AND_CAPACITY] + by_step[Step.COST]
    return [
        Check("arriving", bool(arrivals.arrived) or waiting.waiting > 0),
        Check("dispatcher", is_alive, waiting.waiting if is_alive is not True else 0),
        Check("switches", switched == 0 and not held, switched),
        Check("published", by_step[Step.MODEL] == 0, by_step[Step.MODEL]),
        Check("capability", capability == 0, capability),
        Check("health", blocked == 0, blocked),
    ]


def _users(models: Iterable[str]) -> Mapping[str, list[str]]:
    """The supplies of each model, by slugs."""
    rows = SupplyBinding.objects.filter(public_model__slug__in=list(models), enabled=True).order_by("id")
    users: dict[str, list[str]] = defaultdict(list)
    for model, supply in rows.values_list("public_model__slug", "supply__slug"):
        users[model].append(supply)
    return users


def _reason(
    code: Code,
    jobs: int,
    waiting: WaitingNow,
    users: Mapping[str, list[str]],
    supplies: Mapping[str, SupplyNow],
) -> Reason:
    groups = [group for group in waiting.groups if group.code is code]
    models = {model: counted[code] for model, counted in waiting.by_model.items() if counted.get(code)}
    bound = {supply for model in models for supply in users.get(model, ())}
    return Reason(
        code=code,
        step=groups[0].step,
        jobs=jobs,
        share=jobs / waiting.waiting,
        models=sorted(models.items(), key=lambda each: (-each[1], each[0])),
        since=min((group.since for group in groups if group.since), default=None),
        causes=_causes(code, [supplies[slug] for slug in sorted(bound) if slug in supplies]),
    )


def _causes(code: Code, supplies: Iterable[SupplyNow]) -> list[Cause]:
    """A channel that is the cause is named once, and not by each of its supplies."""
    found, channels = [], set()
    for supply in supplies:
        if not _is_cause(code, supply):
            continue
        is_channels = supply.maintenance is not None or supply.circuit.place == "channel"
        if is_channels and supply.row.channel_id in channels:
            continue
        channels |= {supply.row.channel_id} if is_channels else set()
        found.append(Cause(supply, is_channels))
    return found


def _is_cause(code: Code, supply: SupplyNow) -> bool:
    match code:
        case Code.OUT_OF_SERVICE:
            return supply.is_out
        case Code.UNHEALTHY:
            return supply.circuit.state in ("circuit_open", "disabled")
        case Code.CAPACITY_FULL:
            return not supply.is_out and supply.slots.taken >= supply.slots.open_to_new
        case Code.UNKNOWN_SLOTS_FULL:
            return supply.slots.unknown > 0
        case _:
            return False


def _all_reasons(groups: Iterable[Group]) -> list[tuple[str, int]]:
    """Jobs by every reason that took out one of their candidates: here a job counts more than once."""
    counted: dict[str, int] = defaultdict(int)
    for group in groups:
        for reason in group.reasons:
            counted[reason] += group.jobs
    return sorted(counted.items(), key=lambda each: (-each[1], each[0]))
