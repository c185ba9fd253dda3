"""The selection pipeline: steps 3 to 12 of routing in their fixed order; nothing is weighed.

Steps 1 and 2 are admission's and the guard's, step 13 is the dispatcher's. Every binding ends with one
finding, written where it was decided.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from catalog.degradation import reduced
from catalog.shape import Shape
from dispatch.routing import filters, guardrails
from dispatch.routing.ordering import ranked, standings
from dispatch.routing.reasons import ALERTS, FLAGS, FULL, OUT_OF_SERVICE
from dispatch.routing.shadow import shadow_order
from dispatch.routing.types import (
    TIERS,
    Candidate,
    Decision,
    Degradation,
    Exclusion,
    Finding,
    Layer,
    Limits,
    RoutingInput,
    Tier,
)

NOT_REACHED: Final = Exclusion("layer_not_reached")
PASSED_BY: Final = Exclusion("real_person_restricted", "the allowed supplies of this tier come first")

type Question = Callable[[Finding, RoutingInput], Exclusion | None]


def route(inputs: RoutingInput) -> Decision:
    """One selection, whole: the same inputs give the same decision, on any day.

    With the model's emergency override, a walk that found nobody is walked again with the multipliers lifted;
    ceilings stay, and if that finds nobody either, the first walk's result is returned whole.
    """
    decision = _Walk(inputs, multipliers_apply=True).decide()
    if decision.outcome != "no_candidate" or not inputs.model.emergency_override:
        return decision
    lifted = _Walk(inputs, multipliers_apply=False).decide()
    if lifted.outcome == "no_candidate":
        return decision
    return _in_emergency(lifted) if lifted.chosen else lifted


class _Walk:
    """One walk through the layers."""

    limits: Limits

    def __init__(self, inputs: RoutingInput, multipliers_apply: bool) -> None:
        self.inputs = inputs
        self.multipliers_apply = multipliers_apply
        self.tiers = {tier: _bound_in(tier, inputs) for tier in TIERS}
        self.entered: set[Tier] = set()
        self.quotes: dict[str, int | None] = {}  # micros, by candidate key
        self.baseline: int | None = None

    def decide(self) -> Decision:
        spilled: Layer | None = None  # the saturated exact layer whose overflow may use fallback
        busy: Layer | None = None  # the first layer whose only fit candidates are probes in flight
        for tier in TIERS:
            if spilled and tier == "degraded":
                break
            for layer, members in self.layers(tier, self.enter(tier)):
                contenders, full = self.examine(members)
                if contenders:
                    return self.choose(layer, contenders, spilled)
                if any(it.health != "probing" for it in full):
                    if not self.may_spill(tier):
                        return self.nobody(spilled or layer)
                    spilled = layer
                    break  # past the exact layer that stands behind it
                if full:
                    busy = busy or layer
        return self.nobody(spilled or busy)

    def enter(self, tier: Tier) -> list[Finding]:
        """Steps 3 to 6, for a whole tier: who remains."""
        self.entered.add(tier)
        members = self.tiers[tier]
        if tier != "exact":
            members = self.keep(filters.tier_permission, members)
        members = self.keep(filters.admin_state, members)
        members = self.keep(filters.already_tried, members)
        if filters.has_terms(self.inputs.demands):
            members = self.keep(filters.customer_terms, members)
        members = self.keep(filters.hard_capability, members)
        if filters.shows_real_person(self.inputs.shape):
            members = self.keep(filters.real_person, members)
        if tier == "exact":
            self.set_limits(members)
        return members

    def layers(self, tier: Tier, members: list[Finding]) -> Iterator[tuple[Layer, list[Finding]]]:
        """Of a tier, in order: with real-person material, `allowed` supplies before `restricted` ones."""
        if not filters.shows_real_person(self.inputs.shape):
            yield Layer(tier), members
            return
        yield Layer(tier, "allowed"), [it for it in members if it.candidate.supply.real_person == "allowed"]
        yield (
            Layer(tier, "restricted"),
            [it for it in members if it.candidate.supply.real_person == "restricted"],
        )

    def examine(self, members: list[Finding]) -> tuple[list[Finding], list[Finding]]:
        """Steps 7 to 11, for one layer: who could be taken, and who could be but for a slot."""
        for it in members:
            it.health = filters.worse_health(it.candidate.supply, self.inputs)
        members = self.keep(filters.refusal_memory, members)
        members = self.keep(filters.health, members)
        for it in members:
            it.free = filters.least_free(it.candidate.supply, self.inputs)
            it.quote = self.quote(it)
        with_slot = self.keep(filters.capacity, members)
        full = [it for it in members if it.verdict == "excluded" and self.is_otherwise_fit(it)]
        return self.keep(self.over_limit, with_slot), full

    def keep(self, question: Question, members: list[Finding]) -> list[Finding]:
        """Asks each; who gives a reason is excluded with it, the others remain."""
        remaining = []
        for it in members:
            if why := question(it, self.inputs):
                it.exclude(why)
            else:
                remaining.append(it)
        return remaining

    def over_limit(self, it: Finding, _inputs: RoutingInput) -> Exclusion | None:
        return guardrails.over(it, self.limits)

    def is_otherwise_fit(self, full: Finding) -> bool:
        """Whether it would be taken if it had a slot soon."""
        return not guardrails.over(full, self.limits) and not filters.waits_too_long(full, self.inputs)

    def may_spill(self, tier: Tier) -> bool:
        return tier == "exact" and self.inputs.policy.spill_when_saturated

    def set_limits(self, eligible: list[Finding]) -> None:
        """The baseline ignores health and load, and what this job has tried."""
        tried = [it for it in self.tiers["exact"] if it.reason == "already_tried" and self.is_eligible(it)]
        self.baseline = guardrails.baseline(self.inputs, (self.quote(it) for it in (*eligible, *tried)))
        self.limits = guardrails.limits(self.inputs, self.baseline, self.multipliers_apply)

    def quote(self, it: Finding) -> int | None:
        """Step 10; once for each, since the baseline asks before its turn."""
        key = it.candidate.key
        if key not in self.quotes:
            self.quotes[key] = guardrails.quoted(it, self.inputs)
        return self.quotes[key]

    def is_eligible(self, it: Finding) -> bool:
        asked = (filters.customer_terms, filters.hard_capability, filters.real_person)
        return not any(question(it, self.inputs) for question in asked)

    def choose(self, layer: Layer, contenders: list[Finding], spilled: Layer | None) -> Decision:
        """Step 12, and what is said about the choice."""
        layer_standings = standings(contenders, self.inputs)
        ranking, probe = ranked(layer_standings, self.inputs)
        first = ranking[0]
        past_exact = layer.tier != "exact" and spilled is None
        flags = {
            "probe": probe,
            "spill": spilled is not None,
            "refusal_probe": first.candidate.supply.id in self.inputs.refusals,
        }
        alerts = {
            "exact_unavailable": past_exact and (layer.tier == "degraded" or self.exact_is_out()),
            "degradation_active": layer.tier == "degraded",
        }
        return Decision(
            "chosen",
            findings=self.all_findings(),
            limits=self.limits,
            baseline=self.baseline,
            layer=layer,
            ranking=tuple(ranking),
            flags=tuple(flag for flag in FLAGS if flags.get(flag)),
            alerts=tuple(alert for alert in ALERTS if alerts.get(alert)),
            degradation=_degradation(first.candidate),
            shape=first.shape,
            shadow=shadow_order(layer_standings, first.candidate.key, self.inputs),
        )

    def nobody(self, awaited: Layer | None) -> Decision:
        """Wait for a slot in the layer `awaited`, or give up where there is none to wait for."""
        past_exact = awaited is None or awaited.tier != "exact"
        return Decision(
            "waiting_capacity" if awaited else "no_candidate",
            findings=self.all_findings(),
            limits=self.limits,
            baseline=self.baseline,
            layer=awaited,
            alerts=("exact_unavailable",) if past_exact and self.exact_is_out() else (),
        )

    def exact_is_out(self) -> bool:
        """Whether an exact binding is out for state or health; a probe in flight is, too."""
        return any(
            it.reason in OUT_OF_SERVICE or (it.reason in FULL and it.health == "probing")
            for it in self.tiers["exact"]
        )

    def all_findings(self) -> tuple[Finding, ...]:
        """Who was not looked at before the walk ended is told so."""
        for tier, members in self.tiers.items():
            for it in members:
                if it.verdict is None:
                    it.exclude(PASSED_BY if tier in self.entered else NOT_REACHED)
        return tuple(chain.from_iterable(self.tiers.values()))


def _bound_in(tier: Tier, inputs: RoutingInput) -> list[Finding]:
    candidates = sorted((it for it in inputs.candidates if it.tier == tier), key=lambda it: it.supply.id)
    return [Finding(it, _shape_for(it, inputs)) for it in candidates]


def _shape_for(candidate: Candidate, inputs: RoutingInput) -> Shape:
    """The request as this candidate would execute it."""
    return inputs.shape if candidate.rule is None else reduced(inputs.shape, candidate.rule)


def _degradation(chosen: Candidate) -> Degradation | None:
    rule = chosen.rule
    return None if rule is None else Degradation(rule.from_profile, rule.to_profile, rule.drop_inputs)


def _in_emergency(decision: Decision) -> Decision:
    raised = {*decision.flags, "emergency_override"}
    return replace(
        decision,
        flags=tuple(flag for flag in FLAGS if flag in raised),
        alerts=(*decision.alerts, "emergency_override"),
    )
