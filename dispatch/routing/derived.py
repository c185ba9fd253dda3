"""The order that a model's bindings would be tried in, tier by tier, for one request as things are; pure.

Unlike a selection it also places what can't be taken right now, so that a person sees the whole order.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.degradation import reduced
from dispatch.routing import filters, guardrails
from dispatch.routing.ordering import ORDERS, standings
from dispatch.routing.types import TIERS, Candidate, Finding, Health, RoutingInput


@dataclass(frozen=True, slots=True)
class Placed:
    """One binding as it stands now. `position` is within its tier, 1 is tried first; None for one that is
    switched off or has no price for the request. Costs in micros of the policy's currency."""

    position: int | None
    health: Health  # the worse of channel and supply
    free: int  # slots
    quote: int | None
    expected_cost: int | None


def derived_order(inputs: RoutingInput) -> Mapping[str, Placed]:
    """By candidate key."""
    findings = {candidate.key: _finding(candidate, inputs) for candidate in inputs.candidates}
    positions: dict[str, int] = {}
    for tier in TIERS:
        layer = [it for it in findings.values() if it.candidate.tier == tier and _can_be_placed(it)]
        key = ORDERS[inputs.policy.order].values
        for position, standing in enumerate(sorted(standings(layer, inputs), key=key), start=1):
            positions[standing.finding.candidate.key] = position
    return {
        key: Placed(positions.get(key), it.health or "healthy", it.free or 0, it.quote, it.expected_cost)
        for key, it in findings.items()
    }


def _finding(candidate: Candidate, inputs: RoutingInput) -> Finding:
    shape = inputs.shape if candidate.rule is None else reduced(inputs.shape, candidate.rule)
    finding = Finding(candidate, shape)
    finding.health = filters.worse_health(candidate.supply, inputs)
    finding.free = filters.least_free(candidate.supply, inputs)
    finding.quote = guardrails.quoted(finding, inputs)
    return finding


def _can_be_placed(it: Finding) -> bool:
    return it.candidate.enabled and it.quote is not None
