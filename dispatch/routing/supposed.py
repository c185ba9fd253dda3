"""A frozen input with facts supposed otherwise: what "why not" tries and what the simulator is told; pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from billing.money import MICROS
from billing.pricing import Bracket, Price
from catalog.shape import ImageShape
from dispatch.routing import filters
from dispatch.routing.types import Candidate, Channel, Condition, Health, RoutingInput, Supply


@dataclass(frozen=True, slots=True)
class Supposition:
    """What is supposed of one candidate, by its key; None is as it is. `quote` in micros of the policy's
    currency, for this request; `health` with the successes that a recovery counts."""

    key: str
    priority: int | None = None
    health: Health | None = None
    recovery_successes: int = 0
    free: int | None = None
    quote: int | None = None


def supposed(inputs: RoutingInput, suppositions: Iterable[Supposition]) -> RoutingInput:
    """The inputs as they would be. One for a candidate that is not there changes nothing."""
    for each in suppositions:
        candidate = next((it for it in inputs.candidates if it.key == each.key), None)
        if candidate is not None:
            inputs = _supposed(inputs, candidate, each)
    return inputs


def _supposed(inputs: RoutingInput, candidate: Candidate, told: Supposition) -> RoutingInput:
    supply = candidate.supply
    if told.health is not None:
        inputs = _with_health(inputs, supply, told.health, told.recovery_successes)
    if told.free is not None:
        enough = told.free >= filters.least_free(supply, inputs)
        inputs = (with_free if enough else without_slots)(inputs, supply, told.free)
    if told.quote is not None:
        inputs = with_quote(inputs, candidate, told.quote)
        candidate = next(it for it in inputs.candidates if it.key == told.key)
    if told.priority is not None:
        inputs = with_candidate(inputs, replace(candidate, priority=told.priority))
    return inputs


def _with_health(inputs: RoutingInput, supply: Supply, health: Health, successes: int) -> RoutingInput:
    """Better: in supply and channel, since the worse one decides. Worse: in the supply alone."""
    better, places = healthier(inputs, supply, health, successes)
    if places:
        return better
    of_supply = _circuit(inputs.supplies[supply.id], health, successes)
    return with_conditions(inputs, supply, of_supply, inputs.channels[supply.channel.id])


def with_candidate(inputs: RoutingInput, changed: Candidate) -> RoutingInput:
    candidates = tuple(changed if it.key == changed.key else it for it in inputs.candidates)
    return replace(inputs, candidates=candidates)


def healthier(
    inputs: RoutingInput, supply: Supply, health: Health, successes: int
) -> tuple[RoutingInput, list[str]]:
    """The inputs with no worse than `health`, and the places that this changes."""
    channel, places = supply.channel, []
    of_supply, of_channel = inputs.supplies[supply.id], inputs.channels[channel.id]
    if _is_worse(of_supply, health, successes):
        of_supply, places = _circuit(of_supply, health, successes), ["the supply"]
    if _is_worse(of_channel, health, successes):
        of_channel, places = _circuit(of_channel, health, successes), [*places, f"channel {channel.id}"]
    return with_conditions(inputs, supply, of_supply, of_channel), places


def _is_worse(condition: Condition, health: Health, successes: int) -> bool:
    now = (filters.RANK[condition.health], -condition.recovery_successes)
    return now > (filters.RANK[health], -successes)


def _circuit(condition: Condition, health: Health, successes: int) -> Condition:
    """A change of state begins an epoch, under which nothing is granted yet."""
    return replace(condition, health=health, recovery_successes=successes, used_in_epoch=0)


def with_conditions(
    inputs: RoutingInput, supply: Supply, of_supply: Condition, of_channel: Condition
) -> RoutingInput:
    return replace(
        inputs,
        supplies={**inputs.supplies, supply.id: of_supply},
        channels={**inputs.channels, supply.channel.id: of_channel},
    )


def with_free(inputs: RoutingInput, supply: Supply, free: int | None) -> RoutingInput:
    """With `free` slots in supply, channel and group; None: with all that can be freed."""
    channel, groups = supply.channel, inputs.groups
    if channel.group is not None:
        group = groups[channel.group.id]
        wanted = group.used if free is None else free - (channel.group.capacity - group.used)
        groups = {**groups, channel.group.id: replace(group, used=group.used - _within(wanted, group.used))}
    changed = with_conditions(
        inputs,
        supply,
        _freed(supply, inputs.supplies[supply.id], free),
        _freed(channel, inputs.channels[channel.id], free),
    )
    return replace(changed, groups=groups)


def without_slots(inputs: RoutingInput, supply: Supply, free: int) -> RoutingInput:
    """With no more than `free` slots in the supply: the others are taken."""
    now = inputs.supplies[supply.id]
    taken = max(0, filters.free_slots(supply, now) - free)
    in_epoch = None if now.used_in_epoch is None else now.used_in_epoch + taken
    full = replace(now, used=now.used + taken, used_in_epoch=in_epoch)
    return with_conditions(inputs, supply, full, inputs.channels[supply.channel.id])


def _freed(place: Channel | Supply, now: Condition, free: int | None) -> Condition:
    known = replace(now, unknown=min(now.unknown, max(0, place.unknown_limit - 1)))
    wanted = known.used if free is None else free - filters.free_slots(place, known)
    in_epoch = known.used_in_epoch
    return replace(
        known,
        used=known.used - _within(wanted, known.used),
        used_in_epoch=None if in_epoch is None else in_epoch - _within(wanted, in_epoch),
    )


def _within(wanted: int, most: int) -> int:
    return max(0, min(wanted, most))


def with_quote(inputs: RoutingInput, loser: Candidate, quote: int) -> RoutingInput:
    """With a price that quotes this request so."""
    supply = replace(loser.supply, price=_quoting(inputs, loser, quote))
    candidates = tuple(
        replace(it, supply=supply) if it.supply.id == supply.id else it for it in inputs.candidates
    )
    return replace(inputs, candidates=candidates)


def _quoting(inputs: RoutingInput, loser: Candidate, quote: int) -> Price:
    shape, currency = inputs.shape, inputs.policy.currency
    each = (quote, MICROS * shape.count)
    price = loser.supply.price
    mode = price.mode if price else "per_request" if isinstance(shape, ImageShape) else shape.billing_mode
    if mode == "per_request" or isinstance(shape, ImageShape) or shape.duration_s is None:
        return Price(mode, currency, unit=each)
    return Price(mode, currency, unit=None, brackets=(Bracket(shape.duration_s, shape.duration_s, each),))
