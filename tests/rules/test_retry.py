"""At most one switch of supply."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dispatch.retry import Failure, SwitchDecision, may_switch

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def decide(
    category: str = "supply", number: int = 1, retryable: bool = True, **wishes: Any
) -> SwitchDecision:
    given = {
        "max_attempts": 2,
        "now": NOW,
        "dispatch_deadline_at": NOW + timedelta(minutes=5),
        "strict_model": False,
        "cancel_requested": False,
        **wishes,
    }
    return may_switch(Failure(number, category, retryable), **given)


@pytest.mark.parametrize("category", ["supply", "capacity"])
def test_a_retryable_failure_of_the_supply_lets_another_try(category: str) -> None:
    assert decide(category) == SwitchDecision(True, "switch")


@pytest.mark.parametrize("category", ["content", "request", "unknown"])
def test_what_another_supply_would_refuse_too_or_nobody_knows_is_never_switched(category: str) -> None:
    assert decide(category) == SwitchDecision(False, f"{category}_error")


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"retryable": False}, "not_retryable"),
        ({"number": 2}, "no_attempt_left"),
        ({"max_attempts": 1}, "no_attempt_left"),
        ({"strict_model": True}, "strict_model"),
        ({"dispatch_deadline_at": NOW}, "dispatch_deadline_passed"),
        ({"cancel_requested": True}, "cancel_requested"),
    ],
)
def test_a_switch_is_refused_with_its_reason(wishes: dict[str, Any], reason: str) -> None:
    assert decide(**wishes) == SwitchDecision(False, reason)
