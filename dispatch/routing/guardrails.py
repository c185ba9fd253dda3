"""Steps 10 and 11: what a candidate would cost, and whether it may."""

from collections.abc import Iterable
from decimal import Decimal

from billing.money import written
from billing.pricing import quote_micros, rate_to
from dispatch.routing.types import Exclusion, Finding, Limits, RoutingInput

MULTIPLIED_ORDERS = ("stable_first", "manual_priority")  # cost_first needs no multiplier in tier exact


def quoted(it: Finding, inputs: RoutingInput) -> int | None:
    """Step 10: micros of the policy's currency, for the request as this candidate would execute it."""
    price = it.candidate.supply.price
    if price is None:
        return None
    rate = rate_to(inputs.policy.currency, price, inputs.rates)
    return None if rate is None else quote_micros(price, it.shape, rate)


def baseline(inputs: RoutingInput, exact_quotes: Iterable[int | None]) -> int | None:
    """The explicit one, else the lowest quote among exact bindings, whatever their health and load."""
    if inputs.model.baseline_micros is not None:
        return inputs.model.baseline_micros
    return min((quote for quote in exact_quotes if quote is not None), default=None)


def limits(inputs: RoutingInput, base: int | None, multipliers_apply: bool) -> Limits:
    """Multipliers are compared exactly: since a quote is whole micros, so may the limit be."""
    policy = inputs.policy
    applied = base if multipliers_apply else None
    return Limits(
        stable=_times(applied, policy.stable_cost_multiplier_limit)
        if policy.order in MULTIPLIED_ORDERS
        else None,
        fallback=_times(applied, policy.fallback_cost_multiplier_limit),
        policy=policy.max_cost_micros,
        customer=inputs.demands.max_cost_micros,
        spent=inputs.job.spent_micros,
    )


def _times(base: int | None, multiplier: Decimal) -> int | None:
    if base is None:
        return None
    numerator, denominator = multiplier.as_integer_ratio()
    return base * numerator // denominator


def over(it: Finding, limits: Limits) -> Exclusion | None:
    """Step 11, in the fixed order: no price, the multiplier, the policy's ceiling, the customer's."""
    quote = it.quote
    if quote is None:
        return Exclusion("no_price", "no price or no exchange rate for this request")
    if it.candidate.tier == "exact":
        if limits.stable is not None and quote > limits.stable:
            return Exclusion("over_stable_limit", _above(quote, limits.stable))
    elif limits.fallback is not None and quote > limits.fallback:
        return Exclusion("over_fallback_limit", _above(quote, limits.fallback))
    total = limits.spent + quote
    if limits.policy is not None and total > limits.policy:
        return Exclusion("over_max_cost", _above(total, limits.policy))
    if limits.customer is not None and total > limits.customer:
        return Exclusion("over_customer_max_cost", _above(total, limits.customer))
    return None


def _above(micros: int, limit: int) -> str:
    return f"{written(micros)} over {written(limit)}"
