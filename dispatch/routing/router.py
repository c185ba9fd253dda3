"""The selection pipeline: steps 3 to 12 of routing in their fixed order; nothing is weighed.

Steps 1 and 2 are admission's and the guard's, step 13 is the dispatcher's. Every binding ends with one
finding, made where it was decided.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from catalog.degradation import reduced
from catalog.shape import Shape, VideoShape
from dispatch.routing import filters, guardrails
from dispatch.routing.ordering import Contender, ranked, standings
from dispatch.routing.reasons import FLAGS, FULL, OUT_OF_SERVICE
from dispatch.routing.shadow import shadow_order
from dispatch.routing.types import (
    TIERS,
    Candidate,
    Decision,
    Degradation,
    Exclusion,
    Finding,
    Health,
    Layer,
    Limits,
    Outcome,
    RoutingInput,
    Statistics,
    Tier,
)

_NO_SAMPLES = Statistics()


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


def _in_emergency(decision: Decision) -> Decision:
    return replace(
        decision,
        flags=_flags({*decision.flags, "emergency_override"}),
        alerts=(*decision.alerts, "emergency_override"),
    )


def _flags(raised: set[str]) -> tuple[str, ...]:
    return tuple(flag for flag in FLAGS if flag in raised)


class _Eligible(NamedTuple):
    """A candidate that passed steps 4 to 6, and the quote for the request as it would execute it.

    It is quoted before its turn in step 10, since the baseline reads the quotes of all exact ones.
    """

    candidate: Candidate
    quote: int | None


class _Walk:
    """One walk through the layers; it collects the finding of each binding as it is made."""

    def __init__(self, inputs: RoutingInput, multipliers_apply: bool) -> None:
        self.inputs = inputs
        self.multipliers_apply = multipliers_apply
        self.findings: dict[str, Finding] = {}
        self.entered: set[Tier] = set()
        self.baseline: int | None = None
        self.limits: Limits

    def decide(self) -> Decision:
        spilled: Layer | None = None  # the saturated exact layer whose overflow may use fallback
        busy: Layer | None = None  # the first layer whose only fit candidates are probes in flight
        for tier in TIERS:
            if spilled and tier == "degraded":
                break
            for layer, members in self.enter(tier):  # steps 3 to 6
                contenders, full = self.examine(members)  # steps 7 to 11
                if contenders:
                    return self.choose(layer, contenders, spilled)  # step 12
                if any(health != "probing" for health in full):
                    if not self.may_spill(tier):
                        return self.wait_or_give_up(spilled or layer)
                    spilled = layer
                    break  # past the exact layer that stands behind it
                if full:
                    busy = busy or layer
        return self.wait_or_give_up(spilled or busy)

    def may_spill(self, tier: Tier) -> bool:
        return tier == "exact" and self.inputs.policy.spill_when_saturated

    # Steps 3 to 6, for a whole tier

    def enter(self, tier: Tier) -> Iterator[tuple[Layer, list[_Eligible]]]:
        """The layers of a tier, in order."""
        self.entered.add(tier)
        members = [each for each in self.inputs.candidates if each.tier == tier]
        eligible = [each for candidate in members if (each := self.admit(candidate))]
        if tier == "exact":
            self.set_limits(eligible, members)
        if not _shows_real_person(self.inputs.shape):
            yield Layer(tier), eligible
            return
        for policy in ("allowed", "restricted"):
            yield (
                Layer(tier, policy),
                [each for each in eligible if each.candidate.supply.real_person == policy],
            )

    def admit(self, candidate: Candidate) -> _Eligible | None:
        exclusion = (
            filters.tier_permission(candidate, self.inputs)
            or filters.admin_state(candidate)
            or filters.already_tried(candidate, self.inputs)
            or self.hard_reason(candidate)
        )
        if exclusion:
            self.exclude(candidate, exclusion)
            return None
        return _Eligible(candidate, self.quote(candidate))

    def hard_reason(self, candidate: Candidate) -> Exclusion | None:
        shape = _shape_for(candidate, self.inputs)
        return filters.hard_capability(candidate, shape, self.inputs) or filters.real_person(candidate, shape)

    def quote(self, candidate: Candidate) -> int | None:
        return guardrails.quoted(candidate, _shape_for(candidate, self.inputs), self.inputs)

    def set_limits(self, eligible: Iterable[_Eligible], exact: Iterable[Candidate]) -> None:
        """The baseline ignores health and load, and what this job has tried."""
        tried = [each for each in exact if self.was_tried(each) and not self.hard_reason(each)]
        quotes = [each.quote for each in eligible] + [self.quote(each) for each in tried]
        self.baseline = guardrails.baseline(self.inputs, quotes)
        self.limits = guardrails.limits(self.inputs, self.baseline, self.multipliers_apply)

    def was_tried(self, candidate: Candidate) -> bool:
        found = self.findings.get(candidate.key)
        return found is not None and found.reason == "already_tried"

    # Steps 7 to 11, for one layer

    def examine(self, members: Iterable[_Eligible]) -> tuple[list[Contender], list[Health]]:
        """Who could be taken; and the health of each who could be but for a slot."""
        found = [self.look_at(each) for each in members]
        contenders = [each for each in found if isinstance(each, Contender)]
        return contenders, [each for each in found if isinstance(each, str)]

    def look_at(self, eligible: _Eligible) -> Contender | Health | None:
        candidate, quote = eligible
        inputs, supply = self.inputs, candidate.supply
        channel_now, supply_now = inputs.channels[supply.channel.id], inputs.supplies[supply.id]
        health = filters.worse(channel_now, supply_now)
        if out := filters.refusal_memory(supply, inputs) or filters.health(channel_now, supply_now):
            self.exclude(candidate, out, health)
            return None
        free = filters.least_free(supply, inputs)
        priced = guardrails.affordable(self.limits, candidate.tier, quote)
        if full := filters.capacity(supply, free, inputs):
            self.exclude(candidate, full, health, quote)
            unfit = isinstance(priced, Exclusion) or filters.waits_too_long(supply, inputs)
            return None if unfit else health
        if isinstance(priced, Exclusion):
            self.exclude(candidate, priced, health, quote)
            return None
        return Contender(candidate, inputs.statistics.get(supply.id, _NO_SAMPLES), health, priced, free)

    def exclude(
        self, candidate: Candidate, why: Exclusion, health: Health | None = None, quote: int | None = None
    ) -> None:
        self.findings[candidate.key] = Finding(candidate, "excluded", why.reason, why.details, health, quote)

    # Step 12, and what the walk comes to

    def choose(self, layer: Layer, contenders: Sequence[Contender], spilled: Layer | None) -> Decision:
        inputs = self.inputs
        layer_standings = standings(contenders, inputs.policy)
        ranking, probe = ranked(layer_standings, inputs)
        self.findings.update({finding.candidate.key: finding for finding in ranking})
        chosen = ranking[0].candidate
        raised = {
            "probe": probe,
            "spill": spilled is not None,
            "refusal_probe": chosen.supply.id in inputs.refusals,
        }
        return replace(
            self.conclude("chosen", layer, past_exact=layer.tier != "exact" and spilled is None),
            ranking=tuple(ranking),
            flags=_flags({flag for flag, up in raised.items() if up}),
            degradation=_degradation(chosen),
            shape=_shape_for(chosen, inputs),
            shadow=shadow_order(layer_standings, chosen.key, inputs),
        )

    def wait_or_give_up(self, layer: Layer | None) -> Decision:
        """Nobody: wait for a slot in `layer`, if there is one to wait for."""
        past_exact = layer is None or layer.tier != "exact"
        return self.conclude("waiting_capacity" if layer else "no_candidate", layer, past_exact)

    def conclude(self, outcome: Outcome, layer: Layer | None, past_exact: bool) -> Decision:
        findings = sorted(map(self.finding, self.inputs.candidates), key=_tier_and_supply)
        degraded = outcome == "chosen" and layer is not None and layer.tier == "degraded"
        exact_out = past_exact and (degraded or any(map(_out_of_service, findings)))
        raised = {"exact_unavailable": exact_out, "degradation_active": degraded}
        alerts = tuple(alert for alert, up in raised.items() if up)
        return Decision(outcome, tuple(findings), self.limits, self.baseline, layer, alerts=alerts)

    def finding(self, candidate: Candidate) -> Finding:
        """As it was decided; or that the walk ended before."""
        found = self.findings.get(candidate.key)
        if found is None:
            passed = candidate.tier in self.entered
            found = Finding(
                candidate, "excluded", "real_person_restricted" if passed else "layer_not_reached"
            )
        return found


def _shows_real_person(shape: Shape) -> bool:
    return isinstance(shape, VideoShape) and shape.real_person


def _shape_for(candidate: Candidate, inputs: RoutingInput) -> Shape:
    """The request as this candidate would execute it."""
    return inputs.shape if candidate.rule is None else reduced(inputs.shape, candidate.rule)


def _degradation(chosen: Candidate) -> Degradation | None:
    if chosen.rule is None:
        return None
    return Degradation(chosen.rule.from_profile, chosen.rule.to_profile, chosen.rule.drop_inputs)


def _out_of_service(finding: Finding) -> bool:
    """An exact binding that is out for its state or health; a probe in flight is out of service too."""
    if finding.candidate.tier != "exact":
        return False
    return finding.reason in OUT_OF_SERVICE or (finding.reason in FULL and finding.health == "probing")


def _tier_and_supply(finding: Finding) -> tuple[int, str]:
    return TIERS.index(finding.candidate.tier), finding.candidate.supply.id
