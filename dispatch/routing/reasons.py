"""The stable codes of routing: the step each belongs to, and the sentence that people read."""

from typing import Final, NamedTuple


class Reason(NamedTuple):
    step: int  # of the thirteen
    sentence: str  # English; the console translates it


REASONS: Final[dict[str, Reason]] = {
    "layer_not_reached": Reason(3, "An earlier tier decided; this one was not looked at."),
    "binding_disabled": Reason(4, "The binding is switched off."),
    "supply_disabled": Reason(4, "An operator disabled the supply."),
    "channel_disabled": Reason(4, "An operator disabled the channel."),
    "draining": Reason(
        4, "The supply or its channel is draining: it finishes what runs and takes nothing new."
    ),
    "already_tried": Reason(4, "This job has tried this supply before."),
    "strict_model": Reason(5, "The request insists on the exact model."),
    "degradation_not_allowed": Reason(5, "The request or the model does not allow a degraded result."),
    "degradation_rule_unpublished": Reason(5, "The degradation rule is not verified and published."),
    "provider_bound": Reason(5, "The request is bound to another supply or channel."),
    "region_denied": Reason(5, "The supply does not run in a region that was asked for."),
    "compliance_denied": Reason(5, "The supply does not give a guarantee that was asked for."),
    "capability_missing": Reason(5, "The supply can't do what the request asks for."),
    "billing_mode": Reason(5, "The supply charges by another billing mode than was asked for."),
    "real_person_denied": Reason(6, "The supply does not take material with real persons."),
    "real_person_restricted": Reason(
        6, "The supply is restricted for real persons: allowed ones of its tier come first."
    ),
    "refusal_frozen": Reason(7, "The provider refused this content too often; it is not sent there again."),
    "refusal_cooldown": Reason(7, "The provider refused this content; it is too early to ask again."),
    "channel_circuit_open": Reason(8, "The channel's circuit is open after failures."),
    "channel_health_disabled": Reason(8, "The channel's health is set to disabled."),
    "supply_circuit_open": Reason(8, "The supply's circuit is open after failures."),
    "supply_health_disabled": Reason(8, "The supply's health is set to disabled."),
    "not_before": Reason(
        9, "The provider asked to wait, or too many submissions of the channel end unknown."
    ),
    "unknown_slots_full": Reason(9, "Too many slots are held by attempts whose outcome is not known."),
    "capacity_full": Reason(9, "No free slot in the group, the channel or the supply."),
    "no_price": Reason(10, "There is no price, or no exchange rate, for this request."),
    "over_stable_limit": Reason(11, "The quote is above the stable multiple of the baseline."),
    "over_fallback_limit": Reason(11, "The quote is above the fallback multiple of the baseline."),
    "over_max_cost": Reason(11, "With what was spent, the quote is above the policy's ceiling."),
    "over_customer_max_cost": Reason(11, "With what was spent, the quote is above the customer's ceiling."),
}

KEYS: Final[dict[str, str]] = {
    "health": "health",
    "success_band": "success band",
    "expected_cost": "expected success cost",
    "free_slots": "free slots",
    "priority": "priority",
    "supply_id": "supply id",
    "probe": "a recovering supply was due to be tried",
}

FLAGS: Final = ("probe", "spill", "emergency_override", "refusal_probe")
ALERTS: Final = ("exact_unavailable", "degradation_active", "emergency_override")

# An exact binding that is out for the state or the health of its supply or channel.
OUT_OF_SERVICE: Final = frozenset({
    "supply_disabled", "channel_disabled", "draining",
    "channel_circuit_open", "supply_circuit_open", "channel_health_disabled", "supply_health_disabled",
})  # fmt: skip
FULL: Final = frozenset({"unknown_slots_full", "capacity_full"})

# Nothing that could change by waiting: with only these, a job fails instead of waiting.
PERMANENT: Final = frozenset({
    "strict_model", "degradation_not_allowed", "degradation_rule_unpublished", "already_tried",
    "provider_bound", "region_denied", "compliance_denied", "capability_missing", "billing_mode",
    "real_person_denied",
    "no_price", "over_stable_limit", "over_fallback_limit", "over_max_cost", "over_customer_max_cost",
})  # fmt: skip
