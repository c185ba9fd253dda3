"""Why a job waits: from stored facts to the one thing that blocks it now; pure.

A candidate that the router took out names its reason; a lot or a job that waits has such a reason for each of
its candidates. What blocks is where the last of them fell, among the reasons that waiting can end."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from dispatch.routing.explain import LAST_STEPS
from dispatch.routing.reasons import PERMANENT, REASONS


class Code(StrEnum):
    """What blocks a job now; in the order in which it is looked for."""

    DISPATCHER_SILENT = "dispatcher_silent"
    DEADLINE_PASSED = "deadline_passed"
    SET_ASIDE = "set_aside"  # its last look broke, and is repeated in a minute
    NOT_LOOKED_AT = "not_looked_at"
    MODEL_NOT_PUBLISHED = "model_not_published"
    NO_CAPABLE_SUPPLY = "no_capable_supply"
    CONTENT_COOLDOWN = "content_cooldown"
    CONTENT_FROZEN = "content_frozen"
    OUT_OF_SERVICE = "out_of_service"
    UNHEALTHY = "unhealthy"
    PROVIDER_PAUSE = "provider_pause"
    UNKNOWN_SLOTS_FULL = "unknown_slots_full"
    CAPACITY_FULL = "capacity_full"
    COST_LIMIT = "cost_limit"
    TENANT_LIMIT = "tenant_limit"
    IN_TURN = "in_turn"


class Step(StrEnum):
    """Where it is stopped: before any selection, at one of the four steps, or in the order of the queue."""

    DISPATCHER = "dispatcher"
    MODEL = "model"
    CAPABILITY = "capability"
    HEALTH_AND_CAPACITY = "health_and_capacity"
    COST = "cost"
    QUEUE = "queue"


STEP_OF: Final[Mapping[Code, Step]] = {
    Code.DISPATCHER_SILENT: Step.DISPATCHER,
    Code.DEADLINE_PASSED: Step.DISPATCHER,
    Code.SET_ASIDE: Step.DISPATCHER,
    Code.NOT_LOOKED_AT: Step.DISPATCHER,
    Code.MODEL_NOT_PUBLISHED: Step.MODEL,
    Code.NO_CAPABLE_SUPPLY: Step.CAPABILITY,
    Code.CONTENT_COOLDOWN: Step.CAPABILITY,
    Code.CONTENT_FROZEN: Step.CAPABILITY,
    Code.OUT_OF_SERVICE: Step.CAPABILITY,
    Code.UNHEALTHY: Step.HEALTH_AND_CAPACITY,
    Code.PROVIDER_PAUSE: Step.HEALTH_AND_CAPACITY,
    Code.UNKNOWN_SLOTS_FULL: Step.HEALTH_AND_CAPACITY,
    Code.CAPACITY_FULL: Step.HEALTH_AND_CAPACITY,
    Code.COST_LIMIT: Step.COST,
    Code.TENANT_LIMIT: Step.QUEUE,
    Code.IN_TURN: Step.QUEUE,
}
# Nothing to mend: these jobs are looked at at once, or wait for others to be served.
FLOWING: Final = frozenset({Code.NOT_LOOKED_AT, Code.IN_TURN, Code.TENANT_LIMIT, Code.DEADLINE_PASSED})

_OF_REASON: Final[Mapping[str, Code]] = {
    "binding_disabled": Code.OUT_OF_SERVICE,
    "supply_disabled": Code.OUT_OF_SERVICE,
    "channel_disabled": Code.OUT_OF_SERVICE,
    "draining": Code.OUT_OF_SERVICE,
    "refusal_cooldown": Code.CONTENT_COOLDOWN,
    "refusal_frozen": Code.CONTENT_FROZEN,
    "not_before": Code.PROVIDER_PAUSE,
    "unknown_slots_full": Code.UNKNOWN_SLOTS_FULL,
    "capacity_full": Code.CAPACITY_FULL,
}
_OF_STEP: Final = (Code.NO_CAPABLE_SUPPLY, Code.UNHEALTHY, Code.COST_LIMIT)
_NO_REASON: Final = frozenset({"layer_not_reached", "real_person_restricted"})  # of later layers

# A lot that nobody starts from is looked at each second and told of every five.
FRESH_FOR: Final = timedelta(seconds=15)
# The last look at a job asks for the next within two seconds; only one that broke is put off for longer.
SET_ASIDE_BEYOND: Final = timedelta(seconds=5)


def blocking_reason(reasons: Iterable[str]) -> str | None:
    """Of the reasons of all candidates the one that blocks: of the last step of the thirteen, then the most
    frequent. What no waiting can end counts only where there is nothing else. None: no candidates."""
    counted = Counter(reason for reason in reasons if reason not in _NO_REASON)
    ending = {reason: number for reason, number in counted.items() if reason not in PERMANENT}
    left = ending or counted
    return min(left, key=lambda reason: (-REASONS[reason].step, -left[reason], reason), default=None)


def code_of_reason(reason: str | None) -> Code:
    """Of a routing reason; a model without candidates has nobody who can."""
    if reason is None:
        return Code.NO_CAPABLE_SUPPLY
    if (code := _OF_REASON.get(reason)) is not None:
        return code
    step = REASONS[reason].step
    return next(code for code, last in zip(_OF_STEP, LAST_STEPS, strict=True) if step <= last)


@dataclass(frozen=True, slots=True)
class Found:
    """What the last look left at a job, or at the lot in which it stands.

    `outcome` is blank where jobs could start; `reasons` holds one for each candidate that was taken out."""

    outcome: str
    reasons: tuple[str, ...] = ()
    looked_at: datetime | None = None


def code_in_queue(found: Found, held_back: str, now: datetime) -> Code:
    """Why a job waits that stands in the fair queue. `held_back`: why its tenant was passed by, or blank."""
    if found.looked_at is None or now - found.looked_at > FRESH_FOR:
        return Code.NOT_LOOKED_AT
    if found.outcome:
        return _code_of_outcome(found)
    return Code.TENANT_LIMIT if held_back else Code.IN_TURN


def code_alone(found: Found | None, next_look_at: datetime, now: datetime) -> Code:
    """Why a job waits that is looked at by itself; without `found` nobody has looked yet."""
    if next_look_at - now > SET_ASIDE_BEYOND:
        return Code.SET_ASIDE
    return Code.NOT_LOOKED_AT if found is None else _code_of_outcome(found)


def _code_of_outcome(found: Found) -> Code:
    if found.outcome in (Code.MODEL_NOT_PUBLISHED, Code.TENANT_LIMIT):
        return Code(found.outcome)
    return code_of_reason(blocking_reason(found.reasons))


@dataclass(frozen=True, slots=True)
class CustomerQueue:
    """What the customer of a waiting job may know: no supplier, no channel, nobody else's job."""

    code: Code = Code.NOT_LOOKED_AT
    until: datetime | None = None  # it begins no earlier, as far as is known
    place: int | None = None  # among the customer's own jobs; 1 = next


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """When the scan was last rung for, and when a dispatcher last began one."""

    rung_at: datetime | None
    answered_at: datetime | None

    def is_silent(self, now: datetime, sign_of_life_s: float, missing_after_s: float) -> bool:
        """Whether a ring waits too long, or not even the ring came that an idle dispatcher gets."""
        if self.answered_at is None or self.rung_at is None:
            return True
        since = self.rung_at if self.answered_at < self.rung_at else self.answered_at
        patience_s = missing_after_s + (sign_of_life_s if since is self.answered_at else 0)
        return (now - since).total_seconds() > patience_s


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence above everything: its code, and how many of how many jobs it is about."""

    code: str  # dispatcher_silent, nothing_waits, flowing, blocked
    reason: Code | None = None  # of most blocked jobs
    jobs: int = 0  # that wait for it
    waiting: int = 0


def verdict(counts: Mapping[Code, int], is_silent: bool) -> Verdict:
    """A silent dispatcher is named first: what was seen last says nothing of now."""
    waiting = sum(counts.values())
    if is_silent:
        return Verdict("dispatcher_silent", Code.DISPATCHER_SILENT, waiting, waiting)
    blocked = {code: number for code, number in counts.items() if number and code not in FLOWING}
    if not waiting:
        return Verdict("nothing_waits")
    if not blocked:
        return Verdict("flowing", waiting=waiting)
    order = list(Code)
    most = min(blocked, key=lambda code: (-blocked[code], order.index(code)))
    return Verdict("blocked", most, blocked[most], waiting)


def place_in_turn(end_user: str, before: int, waiting: Mapping[str, int], last_end_user: str) -> int:
    """A job's place, 1 = next, where end users are served in turn, the one after `last_end_user` first.

    `before`: jobs of its own end user that go before it; `waiting`: how many each end user has."""
    mine = _turn(end_user, last_end_user)
    others = sum(
        min(number, before + (_turn(user, last_end_user) < mine))
        for user, number in waiting.items()
        if user != end_user
    )
    return before + others + 1


def _turn(end_user: str, last_end_user: str) -> tuple[bool, str]:
    return (end_user <= last_end_user, end_user)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Two clocks that never run at once: until a supply was first selected, and from then on. Seconds."""

    queued_s: float
    executing_s: float | None  # None: not begun


def clocks(
    created_at: datetime, started_at: datetime | None, finished_at: datetime | None, now: datetime
) -> Clocks:
    end = finished_at or now
    if started_at is None:
        return Clocks((end - created_at).total_seconds(), None)
    return Clocks((started_at - created_at).total_seconds(), (end - started_at).total_seconds())
