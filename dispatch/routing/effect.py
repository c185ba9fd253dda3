"""What a draft revision of a public model would have done to recorded selections; pure.

Rounds are replayed one by one: slots and health did not react to the picks that changed, so this is a
first-order estimate.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from billing.pricing import Ratio
from catalog.degradation import Rule
from catalog.policy import Policy
from dispatch.routing.ordering import NO_SAMPLES
from dispatch.routing.types import (
    Candidate,
    Condition,
    GroupCondition,
    Model,
    RoutingInput,
    Statistics,
    Supply,
    Tier,
    Version,
    candidate_keys,
)

EXAMPLES: Final = 10


class NotReplayable(ValueError):
    """A round can't say what the draft would have done; rounds with the same reason have the same message."""


@dataclass(frozen=True, slots=True)
class DraftBinding:
    supply: str
    tier: Tier
    priority: int = 0
    enabled: bool = True
    rule: Rule | None = None  # when the tier is degraded


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the place of a round's own model, policy and bindings."""

    model: Model
    policy: Policy
    policy_version: Version
    bindings: tuple[DraftBinding, ...]


@dataclass(frozen=True, slots=True)
class Present:
    """Today's supplies by id and today's rates, for what a draft binds and a round did not know."""

    supplies: Mapping[str, Supply] = field(default_factory=dict)
    rates: Mapping[str, Ratio] = field(default_factory=dict)
    rate_versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pick:
    """What one decision came to. Costs in micros; `success` is the estimate of the chosen supply."""

    outcome: str
    supply: str | None = None
    quote: int = 0
    success: Fraction = Fraction(0)

    @property
    def name(self) -> str:
        """The supply, or the outcome without one."""
        return self.supply or self.outcome


@dataclass(frozen=True, slots=True)
class Replayed:
    """One recorded round, and the same round under the draft. `assumed` are the supplies that it did not
    know, taken as healthy, free and without samples."""

    round: str  # public id
    before: Pick
    after: Pick
    assumed: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.before.name != self.after.name


@dataclass(frozen=True, slots=True)
class Move:
    """Supplies, or outcomes where no supply was chosen."""

    before: str
    after: str
    rounds: int


@dataclass(frozen=True, slots=True)
class Effect:
    """Counts are rounds. Costs (micros of the policy's currency) and success (means of the estimates) are
    over the `compared` rounds, in which both the record and the draft chose a supply."""

    recorded: int  # in the window; the newest of them were replayed
    replayed: int
    not_replayed: Mapping[str, int]  # by reason
    changed: int
    moves: tuple[Move, ...]  # most frequent first
    lost: Mapping[str, int]  # had a supply and would have had none, by the outcome instead
    gained: int  # had none and would have had one
    compared: int
    cost_before_micros: int
    cost_after_micros: int
    success_before: float
    success_after: float
    assumed: Mapping[str, int]  # supplies whose health and slots of the time nobody recorded
    examples: tuple[str, ...]  # public ids of rounds that changed
    picks: Mapping[str, int]  # rounds in which the draft chose a supply, by supply
    quotes_micros: int  # the sum of these rounds' quotes
    expected_success: float  # the mean of these rounds' estimates

    @property
    def cost_difference_micros(self) -> int:
        return self.cost_after_micros - self.cost_before_micros

    @property
    def success_difference(self) -> float:
        return self.success_after - self.success_before

    @property
    def cost_per_success_micros(self) -> int | None:
        """What a success would have cost, as far as quotes and estimates say."""
        successes = self.expected_success * sum(self.picks.values())
        return round(self.quotes_micros / successes) if successes else None


def under(inputs: RoutingInput, draft: Draft, present: Present) -> RoutingInput:
    """The recorded inputs with the draft's model, policy and bindings; health, slots, prices, capabilities
    and statistics stay as recorded. Raises NotReplayable."""
    if draft.policy.currency != inputs.policy.currency:
        raise NotReplayable(
            f"recorded in {inputs.policy.currency}, the draft's policy counts {draft.policy.currency}"
        )
    known = {candidate.supply.id: candidate.supply for candidate in inputs.candidates}
    bound = {each.supply: _supply(each.supply, known, present, inputs) for each in draft.bindings}
    channels = {supply.channel.id: supply.channel for supply in bound.values()}
    groups = [channel.group.id for channel in channels.values() if channel.group]
    return replace(
        inputs,
        model=draft.model,
        policy=draft.policy,
        policy_version=draft.policy_version,
        candidates=_candidates(draft, bound),
        channels={key: inputs.channels.get(key, Condition()) for key in channels},
        supplies={key: inputs.supplies.get(key, Condition()) for key in bound},
        groups={key: inputs.groups.get(key, GroupCondition()) for key in groups},
        rates={**present.rates, **inputs.rates},
        rate_versions={**present.rate_versions, **inputs.rate_versions},
        demands=replace(inputs.demands, degradation=_asked(inputs)),
        compile_refusals={},
    )


def unknown_to(inputs: RoutingInput, draft: Draft) -> tuple[str, ...]:
    """The draft's supplies that the round knows nothing of."""
    return tuple(sorted({each.supply for each in draft.bindings} - set(inputs.supplies)))


def _supply(name: str, known: Mapping[str, Supply], present: Present, inputs: RoutingInput) -> Supply:
    if name in known:
        return known[name]
    if name not in present.supplies:
        raise NotReplayable(f"supply {name} has no published capability")
    supply = present.supplies[name]
    recorded = (it.supply.channel for it in inputs.candidates if it.supply.channel.id == supply.channel.id)
    return replace(supply, channel=next(recorded, supply.channel))


def _candidates(draft: Draft, bound: Mapping[str, Supply]) -> tuple[Candidate, ...]:
    keys = candidate_keys((each.supply, each.tier) for each in draft.bindings)
    return tuple(
        Candidate(
            key=keys[each.supply, each.tier],
            supply=bound[each.supply],
            tier=each.tier,
            priority=each.priority,
            enabled=each.enabled,
            rule=each.rule,
        )
        for each in draft.bindings
    )


def _asked(inputs: RoutingInput) -> Any:
    """Admission writes the model's mode into a request that names none: that is the model's, not a wish."""
    asked = inputs.demands.degradation
    return None if asked == inputs.model.degradation else asked


def pick(decision: Mapping[str, Any], statistics: Mapping[str, Statistics]) -> Pick:
    """From a decision as it is stored (Decision.as_json)."""
    supply = decision["chosen"]
    if supply is None:
        return Pick(decision["outcome"])
    chosen = next(each for each in decision["candidates"].values() if each["verdict"] == "chosen")
    seen = statistics.get(supply, NO_SAMPLES)
    success = Fraction(2 * seen.successes + 9, 2 * seen.samples + 10)
    return Pick(decision["outcome"], supply, chosen["quote"], success)


def summed_up(recorded: int, rounds: Iterable[Replayed], not_replayed: Mapping[str, int]) -> Effect:
    """`recorded` is how many rounds the window holds, replayed or not."""
    replayed = list(rounds)
    changed = [each for each in replayed if each.changed]
    both = [each for each in replayed if each.before.supply and each.after.supply]
    chosen = [each.after for each in replayed if each.after.supply]
    return Effect(
        recorded=recorded,
        replayed=len(replayed),
        not_replayed=dict(not_replayed),
        changed=len(changed),
        moves=_moves(changed),
        lost=dict(
            Counter(each.after.outcome for each in changed if each.before.supply and not each.after.supply)
        ),
        gained=sum(each.before.supply is None and each.after.supply is not None for each in changed),
        compared=len(both),
        cost_before_micros=sum(each.before.quote for each in both),
        cost_after_micros=sum(each.after.quote for each in both),
        success_before=_mean([each.before.success for each in both]),
        success_after=_mean([each.after.success for each in both]),
        assumed=dict(Counter(supply for each in replayed for supply in each.assumed)),
        examples=tuple(each.round for each in changed[:EXAMPLES]),
        picks=dict(Counter(each.name for each in chosen).most_common()),
        quotes_micros=sum(each.quote for each in chosen),
        expected_success=_mean([each.success for each in chosen]),
    )


def _moves(changed: Iterable[Replayed]) -> tuple[Move, ...]:
    counted = Counter((each.before.name, each.after.name) for each in changed)
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Move(before, after, rounds) for (before, after), rounds in ordered)


def _mean(estimates: list[Fraction]) -> float:
    return float(sum(estimates, Fraction(0)) / len(estimates)) if estimates else 0.0
