"""What a dispatch policy may say: every wrong value is refused with the parameter's name."""

from decimal import Decimal
from typing import Any

import pytest

from catalog.policy import Policy, PolicyError, parse_policy


def test_a_policy_that_says_nothing_has_every_default() -> None:
    assert parse_policy({}) == Policy()


def test_what_it_says_is_kept_exactly() -> None:
    policy = parse_policy(
        {
            "order": "cost_first",
            "shadow_order": None,
            "success_band": "0.05",
            "stable_cost_multiplier_limit": 1.1,
            "max_attempts": 1,
            "spill_when_saturated": True,
            "max_cost_micros": None,
        }
    )
    assert (policy.order, policy.shadow_order, policy.max_attempts) == ("cost_first", None, 1)
    assert (policy.success_band, policy.stable_cost_multiplier_limit) == (Decimal("0.05"), Decimal("1.1"))
    assert policy.spill_when_saturated is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("order", "cheapest"),
        ("order", None),
        ("shadow_order", "cheapest"),
        ("currency", "usd"),
        ("currency", 840),
        ("currency", "US1"),
        ("success_band", "a lot"),
        ("success_band", ""),
        ("success_band", "NaN"),
        ("success_band", "sNaN"),
        ("success_band", 0),
        ("success_band", True),
        ("success_band", None),
        ("stable_cost_multiplier_limit", "0.99"),
        ("fallback_cost_multiplier_limit", "Infinity"),
        ("fallback_cost_multiplier_limit", float("nan")),
        ("max_attempts", True),
        ("max_attempts", 1.0),
        ("max_attempts", 3),
        ("max_attempts", "2"),
        ("spill_when_saturated", 1),
        ("spill_when_saturated", 0),
        ("spill_when_saturated", "yes"),
        ("min_samples", 0),
        ("min_samples", True),
        ("min_samples", 20.0),
        ("probe_every", -1),
        ("dispatch_deadline_s", None),
        ("max_cost_micros", -1),
    ],
)
def test_a_value_that_it_can_not_have_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=f"^{name}: "):
        parse_policy({name: value})


def test_an_unknown_parameter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PolicyError, match=r"^min_sample: no such parameter; known are .*min_samples"):
        parse_policy({"min_sample": 20})
