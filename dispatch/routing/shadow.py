"""The second order of a policy: computed over the same layer, stored beside the real one, never executed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from catalog.policy import PRIORITY_MAX
from dispatch.routing.ordering import NO_SAMPLES, Standing, in_order, wilson_lower_95
from dispatch.routing.types import RoutingInput, Shadow

UNKNOWN: Final = 0.5  # the score of what is not known: neither good nor bad
MILLION: Final = 1_000_000  # what scores are told in


@dataclass(frozen=True, slots=True)
class Weights:
    """What the parts of the weighted score count, and what is taken off; each part is within 0 to 1."""

    quality: float = 0.28
    success: float = 0.22
    latency: float = 0.18
    cost: float = 0.14
    capacity: float = 0.10
    region: float = 0.04
    preference: float = 0.04
    latency_good_s: float = 30.0  # p95 at or below it counts 1
    latency_bad_s: float = 600.0  # p95 at or above it counts 0
    penalty_per_health_step: float = 0.05  # degraded 1 step, recovering 2, probing 3
    margin: float = 0.02  # who leads the real order is overtaken only by more than this


DEFAULT_WEIGHTS: Final = Weights()


class Bounds(NamedTuple):
    """What the layer's costs (micros) and free slots are compared with."""

    least_cost: int
    most_cost: int
    most_free: int


def shadow_order(layer: Sequence[Standing], leader: str, inputs: RoutingInput) -> Shadow | None:
    """`leader` is the key of the candidate that the real order chose."""
    name = inputs.policy.shadow_order
    if name is None:
        return None
    if name == "weighted":
        return weighted(layer, leader, inputs)
    return Shadow(name, tuple(it.finding.candidate.key for it in in_order(layer, name)))


def weighted(
    layer: Sequence[Standing], leader: str, inputs: RoutingInput, weights: Weights = DEFAULT_WEIGHTS
) -> Shadow:
    """The order by weighted score; the margin keeps small advantages from swinging it to and fro."""
    costs = [it.cost for it in layer]
    bounds = Bounds(min(costs), max(costs), max(it.free for it in layer))
    scores = {it.finding.candidate.key: _score(it, bounds, inputs, weights) for it in layer}
    order = sorted(scores, key=lambda key: (-scores[key], key))
    if scores[order[0]] - scores[leader] <= round(weights.margin * MILLION):
        order.remove(leader)
        order.insert(0, leader)
    return Shadow("weighted", tuple(order), scores)


def _score(it: Standing, bounds: Bounds, inputs: RoutingInput, weights: Weights) -> int:
    """In millionths, so that what is stored is the same on every machine that reads it."""
    seen = inputs.statistics.get(it.supply, NO_SAMPLES)
    region = it.finding.candidate.supply.channel.region
    score = (
        weights.quality * (UNKNOWN if seen.quality is None else seen.quality)
        + weights.success * wilson_lower_95(seen.successes, seen.samples)
        + weights.latency * _latency(seen.p95_s, weights)
        + weights.cost * _cost(it.cost, bounds)
        + weights.capacity * (it.free / bounds.most_free) ** 2
        + weights.region * _region(region, inputs)
        + weights.preference * it.priority / PRIORITY_MAX
        - weights.penalty_per_health_step * it.health
    )
    return round(score * MILLION)


def _latency(p95_s: float | None, weights: Weights) -> float:
    if p95_s is None:
        return UNKNOWN
    return _clamped((weights.latency_bad_s - p95_s) / (weights.latency_bad_s - weights.latency_good_s))


def _cost(cost: int, bounds: Bounds) -> float:
    if bounds.least_cost == bounds.most_cost:
        return 1.0
    return _clamped((bounds.most_cost - cost) / (bounds.most_cost - bounds.least_cost))


def _region(region: str, inputs: RoutingInput) -> float:
    """1 in a region that the request prefers, and where it prefers none."""
    return 1.0 if not inputs.demands.regions or region in inputs.demands.regions else 0.0


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))
