"""What counts for health."""

import pytest

from dispatch.evidence import Piece, piece_of
from dispatch.lifecycle import AttemptState

A = AttemptState


def test_a_generated_result_is_a_success() -> None:
    assert piece_of(A.GENERATED, "", "", "") == Piece(True)


def test_a_lost_submission_is_one_failure_of_the_supply() -> None:
    assert piece_of(A.SUBMISSION_UNCERTAIN, "unknown", "attempt", "submission_unknown") == Piece(
        False, "supply", "submission_unknown"
    )


@pytest.mark.parametrize("category", ["content", "request"])
@pytest.mark.parametrize("scope", ["request", "supply", "channel"])
def test_what_the_customer_sent_says_nothing_about_the_supplier(category: str, scope: str) -> None:
    assert piece_of(A.FAILED, category, scope, "safety_input") is None


@pytest.mark.parametrize(
    ("category", "scope", "code", "expected_scope"),
    [
        ("supply", "supply", "internal_retryable", "supply"),
        ("capacity", "supply", "rate_limited", "supply"),
        ("supply", "channel", "auth", "channel"),
        ("supply", "channel", "network", "channel"),
    ],
)
def test_a_failure_counts_where_it_belongs(category: str, scope: str, code: str, expected_scope: str) -> None:
    assert piece_of(A.FAILED, category, scope, code) == Piece(False, expected_scope, code)


@pytest.mark.parametrize("code", ["unsupported_capability", "quota", "not_created", "output_expired"])
def test_some_failures_of_a_supply_are_no_fault_of_its_health(code: str) -> None:
    assert piece_of(A.FAILED, "supply", "supply", code) is None


@pytest.mark.parametrize("state", [A.CANCELLED, A.ABANDONED, A.SUCCEEDED, A.ACCEPTED, A.OUTCOME_UNCERTAIN])
def test_other_moves_say_nothing(state: AttemptState) -> None:
    assert piece_of(state, "", "", "") is None
