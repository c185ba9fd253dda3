"""When to look again; pure. Each formula is without jitter, which `jittered` adds."""

from collections.abc import Mapping, Sequence

_JUST_SUBMITTED_S = (2, 4, 8)
_PROVIDER_QUEUE_S = (15, 30, 60)
_RUNNING_S = (10, 15, 30)
_POLL_FAILED_S = (5, 10, 20, 40, 60)
_FETCH_FAILED_S = (2, 5, 15, 60, 300, 900)
_RECOVERY_S = (5, 15, 30, 60, 120, 300)
_POLL_S: Mapping[str, Sequence[float]] = {
    "accepted": _JUST_SUBMITTED_S,
    "provider_queued": _PROVIDER_QUEUE_S,
    "outcome_uncertain": _RECOVERY_S,
}

_NEAR_P95_S = 10
_P95_IS_NEAR, _P95_IS_OVER = 0.8, 1.5  # of p95

JITTER = 0.2


def poll_interval_s(state: str, quiet_polls: int, elapsed_s: float = 0, p95_s: float | None = None) -> float:
    """Seconds to the next poll of an attempt in `state` after `quiet_polls` polls that said nothing new.

    `elapsed_s` since the attempt began; `p95_s` is how long its supply takes at the 95th percentile: about
    then it is asked every ten seconds, and no longer wait reaches past the beginning of that time."""
    wait_s = _step(_POLL_S.get(state, _RUNNING_S), quiet_polls)
    if p95_s is None or elapsed_s > p95_s * _P95_IS_OVER:
        return wait_s
    return min(wait_s, max(_NEAR_P95_S, p95_s * _P95_IS_NEAR - elapsed_s))


def poll_failed_s(failures: int, retry_after_s: float | None) -> float:
    """A provider's own Retry-After is respected; without one the waits grow with the failures in a row."""
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
