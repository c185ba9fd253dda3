"""Step 12: success estimates, bands, the orders, and the probe that keeps a recovery from starving.

Every order is total: its last key is the supply's id.
"""

from collections.abc import Callable, Sequence
from math import floor, sqrt
from typing import Final, NamedTuple

from catalog.policy import Policy
from dispatch.routing.filters import RANK
from dispatch.routing.types import Finding, RoutingInput, Statistics

Z: Final = 1.96  # 95 %
LAST_SERVING: Final = RANK["degraded"]  # what passed step 8 with a worse health is on its way back
NO_SAMPLES: Final = Statistics()

type Values = tuple[int | str, ...]


class Standing(NamedTuple):
    """A finding that passed steps 4 to 11, with what the orders read."""

    finding: Finding
    health: int  # rank, 0 is best
    band: int
    cost: int  # expected success cost, micros
    free: int  # slots
    priority: int
    supply: str


class Order(NamedTuple):
    """Lexicographic: the names of the keys, and their values for one standing, lower is better."""

    keys: tuple[str, ...]
    values: Callable[[Standing], Values]


ORDERS: Final = {
    "stable_first": Order(
        ("health", "success_band", "expected_cost", "free_slots", "supply_id"),
        lambda it: (it.health, -it.band, it.cost, -it.free, it.supply),
    ),
    "cost_first": Order(
        ("expected_cost", "health", "success_band", "free_slots", "supply_id"),
        lambda it: (it.cost, it.health, -it.band, -it.free, it.supply),
    ),
    "manual_priority": Order(
        ("priority", "expected_cost", "health", "success_band", "free_slots", "supply_id"),
        lambda it: (-it.priority, it.cost, it.health, -it.band, -it.free, it.supply),
    ),
}


def standings(layer: Sequence[Finding], inputs: RoutingInput) -> list[Standing]:
    """Each with its expected success cost, and its success band within this layer."""
    statistics = [inputs.statistics.get(it.candidate.supply.id, NO_SAMPLES) for it in layer]
    return list(map(_standing, layer, statistics, bands(statistics, inputs.policy)))


def _standing(it: Finding, seen: Statistics, band: int) -> Standing:
    if it.health is None or it.quote is None or it.free is None:
        raise ValueError(f"{it.candidate.key} has not passed steps 7 to 11")
    it.band, it.expected_cost = band, expected_cost(it.quote, seen)
    candidate = it.candidate
    return Standing(
        it, RANK[it.health], band, it.expected_cost, it.free, candidate.priority, candidate.supply.id
    )


def expected_cost(quote: int, seen: Statistics) -> int:
    """ceil(quote / p) micros, with p = (successes + 4.5) / (samples + 5), in whole numbers."""
    return -(-2 * quote * (seen.samples + 5) // (2 * seen.successes + 9))


def bands(layer: Sequence[Statistics], policy: Policy) -> list[int]:
    """The success band of each. One with too few samples takes the band of the confident ones, pooled:
    the unknown is neither rewarded nor punished."""
    width = float(policy.success_band)
    enough = max(1, policy.min_samples)
    confident = [seen for seen in layer if seen.samples >= enough]
    successes, samples = (
        sum([seen.successes for seen in confident]),
        sum([seen.samples for seen in confident]),
    )
    pooled = _band(successes, samples, width)
    return [
        _band(seen.successes, seen.samples, width) if seen.samples >= enough else pooled for seen in layer
    ]


def _band(successes: int, samples: int, width: float) -> int:
    return floor(wilson_lower_95(successes, samples) / width)


def wilson_lower_95(successes: int, samples: int) -> float:
    """Lower bound of the 95 % interval of a success rate, in double precision, never below 0."""
    if successes == 0:
        return 0.0
    rate, square = successes / samples, Z * Z
    spread = Z * sqrt(rate * (1 - rate) / samples + square / (4 * samples * samples))
    return max(0.0, (rate + square / (2 * samples) - spread) / (1 + square / samples))


def in_order(layer: Sequence[Standing], name: str) -> list[Standing]:
    return sorted(layer, key=ORDERS[name].values)


def ranked(layer: Sequence[Standing], inputs: RoutingInput) -> tuple[list[Finding], bool]:
    """The layer in the policy's order, best first, and whether a probe was put in front of it."""
    ranking = in_order(layer, inputs.policy.order)
    probe = _probe(ranking, inputs)
    if probe is not None:
        ranking.insert(0, ranking.pop(probe))
    _write_down(ranking, ORDERS[inputs.policy.order])
    return [it.finding for it in ranking], probe is not None


def _probe(ranking: Sequence[Standing], inputs: RoutingInput) -> int | None:
    """Where the probing or recovering candidate stands that this selection is to try, if it is to try one."""
    policy, job = inputs.policy, inputs.job
    if policy.order != "stable_first" or policy.probe_every == 0 or job.attempt != 1:
        return None
    if job.selection_number % policy.probe_every or ranking[0].health > LAST_SERVING:
        return None
    return next((place for place, it in enumerate(ranking) if it.health > LAST_SERVING), None)


def _write_down(ranking: Sequence[Standing], order: Order) -> None:
    """Each one's place, and the first key in which it lost; `probe` for one that the probe overtook."""
    best = order.values(ranking[0])
    for position, it in enumerate(ranking, start=1):
        values, finding = order.values(it), it.finding
        finding.verdict, finding.position = "ranked", position
        finding.lost_by = "probe" if values < best else _first_difference(order.keys, values, best)
    ranking[0].finding.verdict = "chosen"


def _first_difference(keys: tuple[str, ...], values: Values, best: Values) -> str | None:
    """None for the chosen one itself: the last key tells any two apart."""
    for key, value, other in zip(keys, values, best, strict=True):
        if value != other:
            return key
    return None
