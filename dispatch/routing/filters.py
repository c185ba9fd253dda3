"""Steps 4 to 9: each asks one question of one binding, and answers with the reason to drop it, or None."""

from datetime import timedelta
from typing import Final

from catalog.capability import lacking
from catalog.shape import ImageShape, Shape, VideoShape
from dispatch.routing.types import (
    HEALTH,
    Channel,
    Condition,
    Demands,
    Exclusion,
    Finding,
    Health,
    RoutingInput,
    Supply,
)
from health.circuit import effective_capacity

RANK: Final = {health: rank for rank, health in enumerate(HEALTH)}  # 0 is best


def tier_permission(it: Finding, inputs: RoutingInput) -> Exclusion | None:
    """Before step 4: whether the request may be served from a tier that is not exact."""
    candidate = it.candidate
    if inputs.demands.strict_model:
        return Exclusion("strict_model", f"tier {candidate.tier}")
    if candidate.tier == "fallback":
        return None
    if not may_degrade(inputs):
        return Exclusion("degradation_not_allowed", "the request or the model is strict")
    if candidate.rule is None or not candidate.rule.usable:
        return Exclusion("degradation_rule_unpublished", "no verified and published rule")
    return None


def may_degrade(inputs: RoutingInput) -> bool:
    """The customer may tighten the model's mode, never loosen it."""
    return inputs.model.degradation == "best_effort" and inputs.demands.degradation != "strict"


def admin_state(it: Finding, _inputs: RoutingInput) -> Exclusion | None:
    """Step 4: the operator's switches."""
    supply = it.candidate.supply
    channel = supply.channel
    if not it.candidate.enabled:
        return Exclusion("binding_disabled")
    if supply.state == "disabled":
        return Exclusion("supply_disabled")
    if channel.state == "disabled":
        return Exclusion("channel_disabled", f"channel {channel.id}")
    if supply.state == "draining":
        return Exclusion("draining", "the supply")
    if channel.state == "draining":
        return Exclusion("draining", f"channel {channel.id}")
    return None


def already_tried(it: Finding, inputs: RoutingInput) -> Exclusion | None:
    """Step 4: a job tries a supply at most once."""
    return Exclusion("already_tried") if it.candidate.supply.id in inputs.job.tried else None


def has_terms(demands: Demands) -> bool:
    """Whether the customer's terms are asked about at all."""
    return bool(demands.bound_supply or demands.bound_channel or demands.regions or demands.compliance)


def customer_terms(it: Finding, inputs: RoutingInput) -> Exclusion | None:
    """Step 5, what the request demands of whoever executes it: binding, region, guarantees."""
    supply, demands = it.candidate.supply, inputs.demands
    if demands.bound_supply is not None and supply.id != demands.bound_supply:
        return Exclusion("provider_bound", f"bound to {demands.bound_supply}")
    if demands.bound_channel is not None and supply.channel.id != demands.bound_channel:
        return Exclusion("provider_bound", f"bound to channel {demands.bound_channel}")
    if demands.regions and not _regions(supply) & demands.regions:
        return Exclusion(
            "region_denied", f"runs in {', '.join(sorted(_regions(supply))) or 'an unknown region'}"
        )
    if demands.compliance and not demands.compliance <= supply.capability.compliance.guarantees:
        missing = demands.compliance - supply.capability.compliance.guarantees
        return Exclusion("compliance_denied", f"does not guarantee {', '.join(sorted(missing))}")
    return None


def _regions(supply: Supply) -> frozenset[str]:
    declared = supply.capability.compliance.regions
    return declared or frozenset({supply.channel.region} - {""})


def hard_capability(it: Finding, inputs: RoutingInput) -> Exclusion | None:
    """Step 5, on the request as this candidate would execute it."""
    supply, shape = it.candidate.supply, it.shape
    if lacks := lacking(supply.capability, shape):
        return Exclusion("capability_missing", "; ".join(lacks))
    if refusal := inputs.compile_refusals.get(it.candidate.key):
        return Exclusion("capability_missing", refusal)
    if supply.price is not None and supply.price.mode != _billing_mode(shape):
        return Exclusion("billing_mode", f"asked {_billing_mode(shape)}, charged {supply.price.mode}")
    return None


def _billing_mode(shape: Shape) -> str:
    return "per_request" if isinstance(shape, ImageShape) else shape.billing_mode


def shows_real_person(shape: Shape) -> bool:
    """Whether step 6 is taken at all: video only."""
    return isinstance(shape, VideoShape) and shape.real_person


def real_person(it: Finding, inputs: RoutingInput) -> Exclusion | None:
    """Step 6."""
    if shows_real_person(inputs.shape) and it.candidate.supply.real_person == "denied":
        return Exclusion("real_person_denied")
    return None


def refusal_memory(it: Finding, inputs: RoutingInput) -> Exclusion | None:
    """Step 7. A cooldown that has passed lets the candidate through: it is the probe."""
    refusal = inputs.refusals.get(it.candidate.supply.id)
    if refusal is None:
        return None
    if refusal.state == "frozen":
        return Exclusion("refusal_frozen")
    if refusal.next_probe_at is None or inputs.now < refusal.next_probe_at:
        return Exclusion("refusal_cooldown", f"until {refusal.next_probe_at}")
    return None


def health(it: Finding, inputs: RoutingInput) -> Exclusion | None:
    """Step 8: channel before supply."""
    if it.health not in ("circuit_open", "disabled"):
        return None
    supply = it.candidate.supply
    channel_health = inputs.channels[supply.channel.id].health
    if channel_health == "circuit_open":
        return Exclusion("channel_circuit_open", f"channel {supply.channel.id}")
    if channel_health == "disabled":
        return Exclusion("channel_health_disabled", f"channel {supply.channel.id}")
    open_circuit = inputs.supplies[supply.id].health == "circuit_open"
    return Exclusion("supply_circuit_open" if open_circuit else "supply_health_disabled")


def worse_health(supply: Supply, inputs: RoutingInput) -> Health:
    """Of channel and supply."""
    of_channel, of_supply = inputs.channels[supply.channel.id].health, inputs.supplies[supply.id].health
    return of_channel if RANK[of_channel] > RANK[of_supply] else of_supply


def capacity(it: Finding, inputs: RoutingInput) -> Exclusion | None:
    """Step 9: a wait that the provider asked for, then unknown slots, then no free slot."""
    supply = it.candidate.supply
    if wait := remaining_wait(supply, inputs):
        return Exclusion("not_before", f"for {wait.total_seconds():g} s")
    return unknown_slots(supply, inputs) or (no_slot(supply, inputs) if it.free == 0 else None)


def remaining_wait(supply: Supply, inputs: RoutingInput) -> timedelta | None:
    """How long the latest `not_before` of supply, channel and group still lasts."""
    channel = supply.channel
    of_supply = inputs.supplies[supply.id].not_before
    of_channel = inputs.channels[channel.id].not_before
    of_group = inputs.groups[channel.group.id].not_before if channel.group else None
    if of_supply is of_channel is of_group is None:
        return None
    latest = max(time for time in (of_supply, of_channel, of_group) if time is not None)
    return max(latest - inputs.now, timedelta(0))


def waits_too_long(it: Finding, inputs: RoutingInput) -> bool:
    """Such a wait counts as unhealthy, so that the next layer opens; a shorter one as full."""
    wait = remaining_wait(it.candidate.supply, inputs)
    return wait is not None and wait > timedelta(seconds=inputs.policy.max_retry_after_wait_s)


def unknown_slots(supply: Supply, inputs: RoutingInput) -> Exclusion | None:
    channel = supply.channel
    held = inputs.channels[channel.id].unknown
    if held >= channel.unknown_limit:
        return Exclusion(
            "unknown_slots_full", f"channel {channel.id}: {held} of at most {channel.unknown_limit}"
        )
    held = inputs.supplies[supply.id].unknown
    if held >= supply.unknown_limit:
        return Exclusion("unknown_slots_full", f"the supply: {held} of at most {supply.unknown_limit}")
    return None


def no_slot(supply: Supply, inputs: RoutingInput) -> Exclusion:
    """Names each place that is full."""
    channel = supply.channel
    places = [
        ("the supply", free_slots(supply, inputs.supplies[supply.id])),
        (f"channel {channel.id}", free_slots(channel, inputs.channels[channel.id])),
    ]
    if channel.group:
        places.append(
            (f"group {channel.group.id}", channel.group.capacity - inputs.groups[channel.group.id].used)
        )
    return Exclusion("capacity_full", ", ".join(place for place, free in places if free <= 0))


def least_free(supply: Supply, inputs: RoutingInput) -> int:
    """Free slots of the tightest of group, channel and supply, never below 0."""
    channel = supply.channel
    free = min(
        free_slots(supply, inputs.supplies[supply.id]),
        free_slots(channel, inputs.channels[channel.id]),
    )
    if channel.group is not None:
        free = min(free, channel.group.capacity - inputs.groups[channel.group.id].used)
    return max(free, 0)


def free_slots(place: Channel | Supply, now: Condition) -> int:
    """Of one channel or supply; below 0 where more is occupied than is open now.

    While probing or recovering, older occupancy counts against the configured capacity only,
    so that it can't block the recovery.
    """
    free = place.capacity - now.used - now.unknown
    if now.health not in ("probing", "recovering"):
        return free
    granted = now.used + now.unknown if now.used_in_epoch is None else now.used_in_epoch
    return min(effective_capacity(now.health, now.recovery_successes, place.capacity) - granted, free)
