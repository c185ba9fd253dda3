"""What routing reads and what it answers: frozen values, built from a scenario file or from rows.

The catalogue's part (Group to Candidate) is built once per catalogue revision and shared by all selections;
the facts (Condition, GroupCondition, Statistics, Refusal) are read once per scan.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from billing.pricing import Price, Ratio
from catalog.capability import Capability
from catalog.degradation import Rule
from catalog.policy import Policy
from catalog.shape import Shape

type Tier = Literal["exact", "fallback", "degraded"]
type AdminState = Literal["enabled", "draining", "disabled"]
type RealPerson = Literal["allowed", "restricted", "denied"]
type Health = Literal["healthy", "degraded", "recovering", "probing", "circuit_open", "disabled"]
type Outcome = Literal["chosen", "waiting_capacity", "no_candidate"]

TIERS: Final[tuple[Tier, ...]] = ("exact", "fallback", "degraded")
ADMIN_STATES: Final = ("enabled", "draining", "disabled")
REAL_PERSON: Final = ("allowed", "restricted", "denied")
HEALTH: Final = ("healthy", "degraded", "recovering", "probing", "circuit_open", "disabled")  # best first


@dataclass(frozen=True, slots=True)
class Version:
    """Names one immutable document. Replay loads it by id and checks the hash: SHA-256, canonical form."""

    id: str
    hash: str


@dataclass(frozen=True, slots=True)
class Group:
    id: str
    capacity: int  # slots


@dataclass(frozen=True, slots=True)
class Channel:
    id: str
    capacity: int  # slots, as configured
    unknown_limit: int  # slots
    state: AdminState = "enabled"
    group: Group | None = None
    region: str = ""


@dataclass(frozen=True, slots=True)
class Supply:
    id: str
    channel: Channel
    capacity: int  # slots, as configured
    unknown_limit: int  # slots
    capability: Capability
    capability_version: Version
    price: Price | None
    price_version: Version | None
    state: AdminState = "enabled"
    real_person: RealPerson = "allowed"  # read for video only


@dataclass(frozen=True, slots=True)
class Candidate:
    """A binding with its supply. `key` is the supply's id, with `@tier` where it is bound in two tiers."""

    key: str
    supply: Supply
    tier: Tier
    priority: int = 0
    enabled: bool = True
    rule: Rule | None = None  # when the tier is degraded


@dataclass(frozen=True, slots=True)
class Model:
    """The public model at the revision that serves."""

    slug: str
    modality: Literal["video", "image"]
    profile: str
    degradation: Literal["strict", "best_effort"] = "strict"
    emergency_override: bool = False
    baseline_micros: int | None = None  # policy's currency
    revision: int | None = None


def default_unknown_limit(capacity: int) -> int:
    """Slots whose outcome may be unknown where nothing is configured: 5 % rounded up, at least 2."""
    return max(2, -(-capacity // 20))


def candidate_keys(bindings: Iterable[tuple[str, Tier]]) -> dict[tuple[str, Tier], str]:
    """The key of each (supply, tier)."""
    pairs = list(bindings)
    bound: dict[str, int] = {}
    for supply, _ in pairs:
        bound[supply] = bound.get(supply, 0) + 1
    return {(supply, tier): supply if bound[supply] == 1 else f"{supply}@{tier}" for supply, tier in pairs}


@dataclass(frozen=True, slots=True)
class Demands:
    """What the customer asked of the routing itself, beside the shape of the work."""

    degradation: Literal["strict", "best_effort"] | None = None  # may tighten the model's, never loosen it
    max_cost_micros: int | None = (
        None  # policy's currency; None too where a sale price was checked at admission
    )
    strict_model: bool = False
    regions: Set[str] = frozenset()  # empty: any
    compliance: Set[str] = frozenset()  # guarantees that must be given
    bound_supply: str | None = None  # an `extend` or a provider's asset: only there, and never a switch
    bound_channel: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What this job did so far."""

    tried: Set[str] = frozenset()  # supplies
    spent_micros: int = 0  # settled, or expected while unsettled
    selection_number: int = 1  # of the model, persistent
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Condition:
    """Health and occupancy of one channel or one supply. Slots are leases."""

    health: Health = "healthy"
    recovery_successes: int = 0  # 2, 3 or 4 while recovering
    used: int = 0  # confirmed
    unknown: int = 0  # outcome not known, and occupying
    used_in_epoch: int | None = None  # granted under the current epoch; None: used + unknown
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class GroupCondition:
    used: int = 0  # confirmed and unknown
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """A supply's rolling window. The last three serve the weighted shadow order only."""

    samples: int = 0
    successes: int = 0
    p95_s: float | None = None
    quality: float | None = None  # 0 to 1


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal record that matches this content at this supply."""

    state: Literal["cooldown", "frozen"]
    next_probe_at: datetime | None = None  # with cooldown


@dataclass(frozen=True)
class RoutingInput:
    """Everything one selection depends on. Mappings are by id; `compile_refusals` by candidate key.

    `compile_refusals` may compute its answers when asked, as long as the same key always gets the same one.
    """

    now: datetime
    model: Model
    policy: Policy
    policy_version: Version
    shape: Shape
    candidates: tuple[Candidate, ...]
    channels: Mapping[str, Condition]
    supplies: Mapping[str, Condition]
    groups: Mapping[str, GroupCondition] = field(default_factory=dict)
    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    demands: Demands = Demands()
    job: Job = Job()
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    rates: Mapping[str, Ratio] = field(default_factory=dict)  # policy's currency per unit of the code
    rate_versions: Mapping[str, str] = field(default_factory=dict)  # ids, for the record
    compile_refusals: Mapping[str, str] = field(default_factory=dict)
    request_hash: str = ""


class Exclusion(NamedTuple):
    """A stable reason code (dispatch.routing.reasons) and what made it true, in readable words."""

    reason: str
    details: str = ""


class Layer(NamedTuple):
    tier: Tier
    real_person: Literal["allowed", "restricted"] | None = None


@dataclass(slots=True)
class Finding:
    """What is found about one binding, written down by each step as it decides; the decision keeps it.

    Fields that no step reached are None.
    """

    candidate: Candidate
    shape: Shape  # the request as this candidate would execute it
    verdict: Literal["chosen", "ranked", "excluded"] | None = None
    reason: str | None = None
    details: str = ""
    health: Health | None = None  # the worse of channel and supply
    free: int | None = None  # slots of the tightest of group, channel and supply
    quote: int | None = None  # micros
    expected_cost: int | None = None  # micros
    band: int | None = None
    position: int | None = None  # 1 = first
    lost_by: str | None = None  # the first key in which it lost to the chosen one

    def exclude(self, why: Exclusion) -> None:
        self.verdict = "excluded"
        self.reason, self.details = why

    def as_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {"verdict": self.verdict, "reason": self.reason, "quote": self.quote}
        if self.verdict != "excluded":
            result |= {"expected_cost": self.expected_cost, "band": self.band, "free": self.free}
        return result


@dataclass(frozen=True, slots=True)
class Limits:
    """The guardrails of this selection, in micros; None does not apply."""

    stable: int | None
    fallback: int | None
    policy: int | None
    customer: int | None
    spent: int


@dataclass(frozen=True, slots=True)
class Degradation:
    requested_profile: str
    actual_profile: str
    dropped_inputs: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "degraded": True,
            "requested_profile": self.requested_profile,
            "actual_profile": self.actual_profile,
            "dropped_inputs": list(self.dropped_inputs),
        }


@dataclass(frozen=True, slots=True)
class Shadow:
    """A second order of the same layer: computed, stored, never executed."""

    name: str
    order: tuple[str, ...]  # candidate keys, best first
    scores: Mapping[str, int] | None = None  # of the weighted order, in millionths


@dataclass(frozen=True)
class Decision:
    """The outcome of one selection. Each binding has one finding, in the order of tier, then supply."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    limits: Limits
    baseline: int | None = None  # micros
    layer: Layer | None = None
    ranking: tuple[Finding, ...] = ()  # of the chosen layer, best first
    flags: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    degradation: Degradation | None = None
    shape: Shape | None = None  # what the chosen supply is to execute: reduced when degraded
    shadow: Shadow | None = None

    @property
    def chosen(self) -> Candidate | None:
        return self.ranking[0].candidate if self.ranking else None

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(finding.candidate.supply.id for finding in self.ranking)

    def as_json(self) -> dict[str, Any]:
        """The result of `manage.py explain --json`, and what a stored snapshot's decision holds."""
        order = list(self.order)
        return {
            "outcome": self.outcome,
            "chosen": order[0] if order else None,
            "layer": self.layer and self.layer._asdict(),
            "order": order,
            "candidates": {finding.candidate.key: finding.as_json() for finding in self.findings},
            "flags": list(self.flags),
            "alerts": list(self.alerts),
            "degradation": self.degradation and self.degradation.as_json(),
            "baseline": self.baseline,
        }
