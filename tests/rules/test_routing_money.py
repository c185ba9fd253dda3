"""Routing, example by example: what a request costs, and the guardrails around it."""

from typing import Any

import pytest

from tests.rules.routing_examples import only_reason
from tests.rules.scenarios import (
    VIDEO_CAPABILITY,
    decided,
    exact,
    fallback,
    fixed,
    per_request,
    per_second,
    reasons,
    scenario,
    supply,
)


def test_a_bracket_is_quoted_whole_so_the_cheaper_second_wins_five_seconds() -> None:
    """0.30 a second; a bracket of 6.00 for 4 to 15 s; 0.25 a second, at least 8."""
    priced = {
        "by-second": supply(price=per_second("0.30")),
        "bracket": supply(price=fixed("6.00")),
        "minimum": supply(price=per_second("0.25", min_s=8)),
    }
    decision = decided(scenario(priced))
    quotes = {finding.candidate.key: finding.quote for finding in decision.findings}
    assert quotes == {"by-second": 1_500_000, "bracket": 6_000_000, "minimum": 2_000_000}
    assert decision.order == ("by-second", "minimum", "bracket")


def test_at_fifteen_seconds_the_minimum_no_longer_counts() -> None:
    priced = {
        "by-second": supply(price=per_second("0.30")),
        "minimum": supply(price=per_second("0.25", min_s=8)),
    }
    assert decided(scenario(priced, request={"duration_s": 15})).order == ("minimum", "by-second")


def test_the_expected_success_cost_counts_failures_in() -> None:
    """1.00 at p = 4.5/25 is dearer than 2.00 at p = 24.5/25."""
    tried = {
        "cheap-but-failing": supply(price=per_second("0.20"), samples=20, successes=0),
        "dear-but-sure": supply(price=per_second("0.40"), samples=20, successes=20),
    }
    decision = decided(scenario(tried))
    costs = {finding.candidate.key: finding.expected_cost for finding in decision.findings}
    assert decision.order[0] == "dear-but-sure"
    assert costs == {"cheap-but-failing": 5_555_556, "dear-but-sure": 2_040_817}


def stable(*, override: bool, ceiling: str = "30.00", **model: Any) -> dict[str, Any]:
    """Only `dear` is healthy, at 6.00 where the baseline is 1.50."""
    supplies = {
        "cheap": supply(price=per_second("0.30"), health="circuit_open"),
        "dear": supply(price=fixed("6.00")),
    }
    policy = {"order": "stable_first", "stable_cost_multiplier_limit": 1.5, "max_cost": ceiling}
    return scenario(supplies, policy=policy, model={"emergency_override": override} | model)


def test_over_the_multiple_of_the_baseline_nobody_is_taken() -> None:
    decision = decided(stable(override=False))
    assert (decision.outcome, decision.baseline) == ("no_candidate", 1_500_000)
    assert reasons(stable(override=False)) == {"cheap": "supply_circuit_open", "dear": "over_stable_limit"}


def test_the_emergency_override_takes_it_with_a_mark_and_an_alert() -> None:
    decision = decided(stable(override=True))
    assert decision.order == ("dear",)
    assert decision.flags == ("emergency_override",)
    assert decision.alerts == ("emergency_override",)


@pytest.mark.parametrize(("ceiling", "outcome"), [("6.00", "chosen"), ("5.99", "no_candidate")])
def test_the_emergency_override_never_passes_the_absolute_ceiling(ceiling: str, outcome: str) -> None:
    decision = decided(stable(override=True, ceiling=ceiling))
    assert decision.outcome == outcome
    assert ("emergency_override" in decision.flags) == (outcome == "chosen")


def test_a_vain_override_returns_the_first_walk_whole() -> None:
    assert reasons(stable(override=True, ceiling="5.99"))["dear"] == "over_stable_limit"


def test_the_multiplier_is_compared_exactly() -> None:
    def dear(amount: str) -> str | None:
        supplies = {"cheap": supply(price=per_request("1.00")), "dear": supply(price=per_request(amount))}
        policy = {"order": "manual_priority", "stable_cost_multiplier_limit": 1.1}
        document = scenario(supplies, policy=policy, request={"billing_mode": "per_request"})
        return reasons(document)["dear"]

    assert dear("1.10") is None
    assert dear("1.100001") == "over_stable_limit"


def test_cost_first_needs_no_multiplier_in_tier_exact_but_in_fallback() -> None:
    supplies = {"cheap": supply(), "dear": supply(price=fixed("9.00")), "spare": supply(price=fixed("9.00"))}
    policy = {"fallback_cost_multiplier_limit": 2.0}
    document = scenario(supplies, [*exact("cheap", "dear"), *fallback("spare")], policy=policy)
    assert decided(document).order == ("cheap", "dear")
    document["supplies"]["cheap"]["health"] = document["supplies"]["dear"]["health"] = "circuit_open"
    assert reasons(document)["spare"] == "over_fallback_limit"


def test_without_an_exact_quote_there_is_no_baseline_and_no_multiplier() -> None:
    supplies = {"silent": supply(price=None), "spare": supply(price=fixed("9.00"))}
    decision = decided(scenario(supplies, [*exact("silent"), *fallback("spare")]))
    assert (decision.baseline, decision.order) == (None, ("spare",))


def test_the_baseline_counts_a_supply_that_was_tried_or_is_down() -> None:
    supplies = {"tried": supply(price=per_second("0.10")), "left": supply(price=per_second("0.30"))}
    decision = decided(scenario(supplies, job={"tried": ["tried"], "attempt": 2}))
    assert decision.baseline == 500_000


def test_the_baseline_does_not_count_what_an_operator_switched_off_or_what_can_not_do_it() -> None:
    supplies = {
        "off": supply(price=per_second("0.01"), state="disabled"),
        "unable": supply(
            price=per_second("0.02"), capability=dict(VIDEO_CAPABILITY) | {"resolutions": ["4k"]}
        ),
        "able": supply(price=per_second("0.30")),
    }
    assert decided(scenario(supplies)).baseline == 1_500_000


def test_what_the_job_has_spent_counts_against_both_ceilings() -> None:
    spent = {"spent": "29.00", "tried": ["b"], "attempt": 2}
    assert only_reason(supply(), job=spent, policy={"max_cost": "30.00"}) == "over_max_cost"
    assert only_reason(supply(), job=spent, request={"max_cost": "30.49"}) == "over_customer_max_cost"
    assert only_reason(supply(), job=spent, request={"max_cost": "30.50"}) is None


def test_a_currency_without_a_rate_is_no_price() -> None:
    yen = supply(price=per_second("40", currency="JPY"))
    assert only_reason(yen) == "no_price"
    assert decided(scenario({"a": yen}, fx={"JPY": "0.0065"})).findings[0].quote == 1_300_000
