"""Step 12: success estimates, bands, the orders, and the probe that keeps a recovery from starving.

Every order is total: its last key is the supply's id.
"""

from collections.abc import Callable, Sequence
from math import floor, sqrt
from typing import Final, NamedTuple

from catalog.policy import Policy
from dispatch.routing.filters import RANK
from dispatch.routing.types import Candidate, Finding, Health, RoutingInput, Statistics

Z: Final = 1.96  # 95 %
SERVING: Final = ("healthy", "degraded")  # what passed step 8 and is neither is on its way back: a probe


class Contender(NamedTuple):
    """A candidate that passed steps 4 to 11."""

    candidate: Candidate
    statistics: Statistics
    health: Health  # the worse of channel and supply
    quote: int  # micros
    free: int  # slots, of the tightest place


class Standing(NamedTuple):
    """A contender with what the orders read of it."""

    contender: Contender
    expected_cost: int  # micros
    band: int


class Order(NamedTuple):
    """Lexicographic: the keys' names, and their values, the lower the better."""

    names: tuple[str, ...]
    values: Callable[[Contender, int, int], tuple[int | str, ...]]  # of contender, expected cost and band


ORDERS: Final = {
    "stable_first": Order(
        ("health", "success_band", "expected_cost", "free_slots", "supply_id"),
        lambda it, cost, band: (RANK[it.health], -band, cost, -it.free, it.candidate.supply.id),
    ),
    "cost_first": Order(
        ("expected_cost", "health", "success_band", "free_slots", "supply_id"),
        lambda it, cost, band: (cost, RANK[it.health], -band, -it.free, it.candidate.supply.id),
    ),
    "manual_priority": Order(
        ("priority", "expected_cost", "health", "success_band", "free_slots", "supply_id"),
        lambda it, cost, band: (
            -it.candidate.priority, cost, RANK[it.health], -band, -it.free, it.candidate.supply.id,
        ),
    ),
}  # fmt: skip


def standings(contenders: Sequence[Contender], policy: Policy) -> list[Standing]:
    """Each with its expected success cost and its success band within this layer."""
    costs = [expected_cost(each.quote, each.statistics) for each in contenders]
    return list(map(Standing, contenders, costs, bands([each.statistics for each in contenders], policy)))


def expected_cost(quote: int, statistics: Statistics) -> int:
    """ceil(quote / p) micros, with p = (successes + 4.5) / (samples + 5), in whole numbers."""
    return -(-2 * quote * (statistics.samples + 5) // (2 * statistics.successes + 9))


def bands(layer: Sequence[Statistics], policy: Policy) -> list[int]:
    """The success band of each. One with too few samples takes the band of the confident ones, pooled:
    the unknown is neither rewarded nor punished."""
    width = float(policy.success_band)
    enough = max(1, policy.min_samples)
    confident = [each for each in layer if each.samples >= enough]
    pooled = _band(sum(each.successes for each in confident), sum(each.samples for each in confident), width)
    return [
        _band(each.successes, each.samples, width) if each.samples >= enough else pooled for each in layer
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


type Keyed = tuple[tuple[int | str, ...], Standing]


def in_order(layer: Sequence[Standing], name: str) -> list[Keyed]:
    """Best first, each with the values it was sorted by."""
    values = ORDERS[name].values
    return sorted(((values(*each), each) for each in layer), key=lambda keyed: keyed[0])


def ranked(layer: Sequence[Standing], inputs: RoutingInput) -> tuple[list[Finding], bool]:
    """The layer in the policy's order, best first, and whether a probe was put in front of it."""
    keyed = in_order(layer, inputs.policy.order)
    probe = _probe(keyed, inputs)
    if probe is not None:
        keyed.insert(0, keyed.pop(probe))
    names, (best, first) = ORDERS[inputs.policy.order].names, keyed[0]
    findings = [_finding(first, 1, None)]
    for position, (values, each) in enumerate(keyed[1:], start=2):
        findings.append(_finding(each, position, _lost_by(names, values, best)))
    return findings, probe is not None


def _probe(keyed: Sequence[Keyed], inputs: RoutingInput) -> int | None:
    """Where the probing or recovering candidate stands that this selection is to try, if it is to try one."""
    policy, job = inputs.policy, inputs.job
    if policy.order != "stable_first" or policy.probe_every == 0 or job.attempt != 1:
        return None
    if job.selection_number % policy.probe_every or keyed[0][1].contender.health not in SERVING:
        return None
    return next(
        (place for place, (_, each) in enumerate(keyed) if each.contender.health not in SERVING), None
    )


def _lost_by(names: tuple[str, ...], values: tuple[int | str, ...], best: tuple[int | str, ...]) -> str:
    """The first key in which a candidate lost; `probe` where it would have stood before the probe."""
    if values < best:
        return "probe"
    return next(name for name, value, other in zip(names, values, best, strict=True) if value != other)


def _finding(standing: Standing, position: int, lost_by: str | None) -> Finding:
    contender, cost, band = standing
    return Finding(
        contender.candidate,
        "chosen" if position == 1 else "ranked",
        health=contender.health,
        quote=contender.quote,
        expected_cost=cost,
        band=band,
        free=contender.free,
        position=position,
        lost_by=lost_by,
    )
