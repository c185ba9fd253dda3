"""When to look again; pure. Each formula is without jitter, which `jittered` adds."""

from collections.abc import Sequence

_JUST_SUBMITTED_S = (2, 4, 8)
_PROVIDER_QUEUE_S = (15, 30, 60)
_RUNNING_S = (10, 15, 30)
_POLL_FAILED_S = (5, 10, 20, 40, 60)
_FETCH_FAILED_S = (2, 5, 15, 60, 300, 900)
_RECOVERY_S = (5, 15, 30, 60, 120, 300)

JITTER = 0.2


def poll_interval_s(state: str, polls_in_state: int) -> float:
    """Seconds to the next poll of an attempt in `state` after `polls_in_state` polls that changed nothing."""
    steps = {"accepted": _JUST_SUBMITTED_S, "provider_queued": _PROVIDER_QUEUE_S}.get(state, _RUNNING_S)
    return _step(steps, polls_in_state)


def poll_failed_s(failures: int, retry_after_s: float | None) -> float:
    """A provider's own Retry-After is respected; without one the waits grow."""
    return max(_step(_POLL_FAILED_S, failures), retry_after_s or 0)


def fetch_failed_s(failures: int) -> float:
    return _step(_FETCH_FAILED_S, failures)


def recovery_s(tries: int, first_wait_s: float) -> float:
    """Look-ups for a lost submission: soon at first, in case the provider lists it at once."""
    return first_wait_s if tries == 0 else _step(_RECOVERY_S, tries)


def jittered(seconds: float, chance: float) -> float:
    """±20 % by `chance` in [0, 1), so that what began together does not come back together."""
    return seconds * (1 - JITTER + 2 * JITTER * chance)


def _step(steps: Sequence[float], index: int) -> float:
    return steps[min(index, len(steps) - 1)]
