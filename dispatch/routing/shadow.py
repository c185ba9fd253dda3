"""The second order of a policy: computed over the same layer, stored beside the real one, never executed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dispatch.routing.filters import RANK
from dispatch.routing.ordering import Standing, in_order, wilson_lower_95
from dispatch.routing.types import RoutingInput, Shadow

UNKNOWN: Final = 0.5  # a score without facts: neither good nor bad
PRIORITY_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Weights:
    """What the parts of the weighted score count, and what is taken off; all within 0 to 1."""

    quality: float = 0.28
    success: float = 0.22
    latency: float = 0.18
    cost: float = 0.14
    capacity: float = 0.10
    region: float = 0.04
    preference: float = 0.04
    latency_good_s: float = 30.0  # p95 at or below: 1
    latency_bad_s: float = 600.0  # p95 at or above: 0
    penalty_per_health_step: float = 0.05  # degraded 1, recovering 2, probing 3
    margin: float = 0.02  # whoever leads the real order must be beaten by more than this


DEFAULT_WEIGHTS: Final = Weights()


def shadow_order(layer: Sequence[Standing], leader: str, inputs: RoutingInput) -> Shadow | None:
    """`leader` is the key of the candidate that the real order chose."""
    name = inputs.policy.shadow_order
    if name is None:
        return None
    if name == "weighted":
        return weighted(layer, leader, inputs)
    return Shadow(name, tuple(each.contender.candidate.key for _, each in in_order(layer, name)))


def weighted(
    layer: Sequence[Standing], leader: str, inputs: RoutingInput, weights: Weights = DEFAULT_WEIGHTS
) -> Shadow:
    """The order by weighted score. The hysteresis margin keeps the leader in front of a small advantage."""
    costs = [each.expected_cost for each in layer]
    slots = max(each.contender.free for each in layer)
    scores = {
        each.contender.candidate.key: _score(each, (min(costs), max(costs)), slots, inputs, weights)
        for each in layer
    }
    order = sorted(scores, key=lambda key: (-scores[key], key))
    if scores[order[0]] - scores[leader] <= round(weights.margin * PRIORITY_MAX):
        order.remove(leader)
        order.insert(0, leader)
    return Shadow("weighted", tuple(order), scores)


def _score(each: Standing, costs: tuple[int, int], slots: int, inputs: RoutingInput, weights: Weights) -> int:
    """In millionths, so that a stored score is the same on every machine that reads it."""
    contender, statistics = each.contender, each.contender.statistics
    score = (
        weights.quality * (UNKNOWN if statistics.quality is None else statistics.quality)
        + weights.success * wilson_lower_95(statistics.successes, statistics.samples)
        + weights.latency * _latency(statistics.p95_s, weights)
        + weights.cost * _cost(each.expected_cost, *costs)
        + weights.capacity * (contender.free / slots) ** 2
        + weights.region * _region(contender.candidate.supply.channel.region, inputs)
        + weights.preference * contender.candidate.priority / PRIORITY_MAX
        - weights.penalty_per_health_step * RANK[contender.health]
    )
    return round(score * 1_000_000)


def _latency(p95_s: float | None, weights: Weights) -> float:
    if p95_s is None:
        return UNKNOWN
    return _clamped((weights.latency_bad_s - p95_s) / (weights.latency_bad_s - weights.latency_good_s))


def _cost(cost: int, least: int, most: int) -> float:
    return 1.0 if least == most else _clamped((most - cost) / (most - least))


def _region(region: str, inputs: RoutingInput) -> float:
    """1 in a region that the request prefers, and where it prefers none."""
    return 1.0 if not inputs.demands.regions or region in inputs.demands.regions else 0.0


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))
