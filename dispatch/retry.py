"""May a second attempt begin? Pure: at most one switch of supply, and never while an outcome is open."""

from dataclasses import dataclass
from datetime import datetime

SWITCHABLE_CATEGORIES = frozenset({"supply", "capacity"})


@dataclass(frozen=True, slots=True)
class Failure:
    """How the last attempt ended, in the adapters' normalized words."""

    attempt_number: int
    category: str  # content, request, supply, capacity, unknown
    retryable: bool


@dataclass(frozen=True, slots=True)
class SwitchDecision:
    """`reason` is a stable word for the job page."""

    allowed: bool
    reason: str


def may_switch(
    failure: Failure,
    *,
    max_attempts: int,
    now: datetime,
    dispatch_deadline_at: datetime,
    strict_model: bool,
    cancel_requested: bool,
) -> SwitchDecision:
    """Whether the job goes on to another supply; the first rule that forbids it decides."""
    if cancel_requested:
        return SwitchDecision(False, "cancel_requested")
    if failure.category not in SWITCHABLE_CATEGORIES:
        return SwitchDecision(False, f"{failure.category}_error")
    if not failure.retryable:
        return SwitchDecision(False, "not_retryable")
    if failure.attempt_number >= max_attempts:
        return SwitchDecision(False, "no_attempt_left")
    if strict_model:
        return SwitchDecision(False, "strict_model")
    if now >= dispatch_deadline_at:
        return SwitchDecision(False, "dispatch_deadline_passed")
    return SwitchDecision(True, "switch")
