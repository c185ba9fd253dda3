"""A model's bindings with all that is known of them now, tier by tier, in the order they would be tried."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from billing.models import CostRuleVersion
from billing.repository import prices_in_force
from catalog.facts import BindingFacts, ModelFacts
from catalog.models import AdminState, PublicModel, Supply
from dispatch.live_catalogue import live_catalogue
from dispatch.models import Maintenance
from dispatch.queries.maintenances import maintenances
from dispatch.routing.derived import Placed, derived_order
from dispatch.routing.filters import RANK
from dispatch.routing.ordering import NO_SAMPLES
from dispatch.routing.types import TIERS, Condition, RoutingInput, Statistics
from dispatch.supposing import supposed_inputs, supposed_model, typical_request


@dataclass(frozen=True, slots=True)
class Circuit:
    """The state that counts for a binding: the worse one of its supply and its channel."""

    state: str
    recovery_successes: int
    since: datetime | None
    place: str  # where it comes from: supply, channel, or "" while both are healthy
    by_admin: bool = False


@dataclass(frozen=True, slots=True)
class BindingNow:
    """`placed` is None where the supply has no capability in force, and so can't be selected at all."""

    facts: BindingFacts
    supply: Supply
    circuit: Circuit
    condition: Condition
    statistics: Statistics
    price: CostRuleVersion | None
    placed: Placed | None
    has_ended: bool  # past its sunset date
    maintenance: Maintenance | None  # of its channel

    @property
    def key(self) -> str:
        return f"{self.facts.supply}@{self.facts.tier}"

    @property
    def success(self) -> float | None:
        return self.statistics.successes / self.statistics.samples if self.statistics.samples else None

    @property
    def free(self) -> int:
        """Slots of the supply alone that nobody holds, for the bar; the tightest place is in `placed`."""
        return max(0, self.supply.concurrency - self.condition.used - self.condition.unknown)

    @property
    def is_usable(self) -> bool:
        """Whether a request could be given to it now, if a slot is free."""
        return (
            self.placed is not None
            and self.placed.position is not None
            and self.circuit.state not in ("circuit_open", "disabled")
            and not self.has_ended
        )


@dataclass(frozen=True, slots=True)
class TierNow:
    tier: str
    bindings: Sequence[BindingNow]

    @property
    def usable(self) -> int:
        return sum(each.is_usable for each in self.bindings)


@dataclass(frozen=True, slots=True)
class LineUp:
    """Who would be tried first now, and who after that one failed."""

    first: BindingNow
    second: BindingNow | None


def next_in_line(tiers: Iterable[TierNow]) -> LineUp | None:
    """None where nobody can take work. A supply that is bound in two tiers is not its own successor."""
    usable = [each for tier in tiers for each in tier.bindings if each.is_usable and each.facts.enabled]
    if not usable:
        return None
    first = usable[0]
    others = (each for each in usable if each.supply.pk != first.supply.pk)
    return LineUp(first, next(others, None))


def bindings_now(
    model: PublicModel, facts: ModelFacts, parameters: Mapping[str, Any], now: datetime
) -> list[TierNow]:
    """Of the model as `facts` say, saved or not. A fixed number of queries, and one more for each circuit
    that is on its way back."""
    rows = {row.slug: row for row in _supplies(each.supply for each in facts.bindings)}
    inputs = _inputs(model, facts, parameters, now)
    placed = derived_order(inputs) if inputs else {}
    prices, out = prices_in_force(now, rows.values()), maintenances()
    bindings = [
        _binding(each, rows[each.supply], inputs, placed, prices, out, now)
        for each in facts.bindings
        if each.supply in rows
    ]
    return [TierNow(tier, _in_order(bindings, tier)) for tier in TIERS]


def _supplies(slugs: Iterable[str]) -> Iterable[Supply]:
    rows = Supply.objects.filter(slug__in=set(slugs))
    return rows.select_related("health", "channel__health", "capability_version")


def _inputs(
    model: PublicModel, facts: ModelFacts, parameters: Mapping[str, Any], now: datetime
) -> RoutingInput | None:
    request = typical_request(model)
    if request is None:
        return None
    catalogue = live_catalogue(now)
    return supposed_inputs(supposed_model(model, facts, parameters, catalogue, now), catalogue, request, now)


def _binding(
    facts: BindingFacts,
    supply: Supply,
    inputs: RoutingInput | None,
    placed: Mapping[str, Placed],
    prices: Mapping[int, CostRuleVersion],
    out: Mapping[int, Maintenance],
    now: datetime,
) -> BindingNow:
    key = facts.supply if facts.supply in placed else f"{facts.supply}@{facts.tier}"
    return BindingNow(
        facts=facts,
        supply=supply,
        circuit=circuit_of(supply),
        condition=inputs.supplies.get(supply.slug, Condition()) if inputs else Condition(),
        statistics=inputs.statistics.get(supply.slug, NO_SAMPLES) if inputs else NO_SAMPLES,
        price=prices.get(supply.pk),
        placed=placed.get(key),
        has_ended=supply.sunset_on is not None and supply.sunset_on < now.date(),
        maintenance=out.get(supply.channel_id),
    )


def _in_order(bindings: Iterable[BindingNow], tier: str) -> list[BindingNow]:
    return sorted(
        (each for each in bindings if each.facts.tier == tier),
        key=lambda each: (_position(each), -each.facts.priority, each.facts.supply),
    )


def _position(binding: BindingNow) -> float:
    placed = binding.placed
    return float("inf") if placed is None or placed.position is None else placed.position


def circuit_of(supply: Supply) -> Circuit:
    """Reads the rows of health that were selected with the supply. An administrator's word goes first."""
    if supply.channel.state == AdminState.DISABLED:
        return Circuit("disabled", 0, None, "channel", by_admin=True)
    if supply.state == AdminState.DISABLED:
        return Circuit("disabled", 0, None, "supply", by_admin=True)
    circuits = [_circuit(supply.channel, "channel"), _circuit(supply, "supply")]
    return max(circuits, key=lambda each: (RANK[each.state], -each.recovery_successes))  # type: ignore[index]


def _circuit(row: Any, place: str) -> Circuit:
    health = getattr(row, "health", None)
    if health is None or health.state == "healthy":
        return Circuit("healthy", 0, None, "")
    return Circuit(health.state, health.recovery_successes, health.changed_at, place)
