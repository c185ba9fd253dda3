"""When a job is looked at again."""

import pytest

from dispatch.backoff import jittered, poll_failed_s, poll_interval_s


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        ("accepted", [2, 4, 8, 8]),
        ("provider_queued", [15, 30, 60, 60]),
        ("running", [10, 15, 30, 30]),
        ("cancel_requested", [10, 15, 30, 30]),
        ("outcome_uncertain", [5, 15, 30, 60, 120, 300, 300]),
    ],
)
def test_each_phase_is_asked_about_less_and_less_often(state: str, waits: list[float]) -> None:
    assert [poll_interval_s(state, polls) for polls in range(len(waits))] == waits


@pytest.mark.parametrize(
    ("elapsed_s", "wait_s"),
    [
        (10, 30),  # long before: as the phase says
        (60, 20),  # the next look is due when the time about p95 begins
        (79, 10),
        (80, 10),
        (100, 10),
        (150, 10),
        (151, 30),  # long after
    ],
)
def test_about_the_time_that_its_supply_takes_a_job_is_asked_about_every_ten_seconds(
    elapsed_s: float, wait_s: float
) -> None:
    assert poll_interval_s("running", 9, elapsed_s, p95_s=100) == wait_s


def test_a_quick_phase_stays_quick_about_that_time() -> None:
    assert poll_interval_s("accepted", 0, 100, p95_s=100) == 2


@pytest.mark.parametrize(
    ("failures", "retry_after_s", "wait_s"), [(1, None, 10), (9, None, 60), (1, 120, 120), (4, 3, 60)]
)
def test_failures_in_a_row_wait_longer_and_a_provider_may_ask_for_more(
    failures: int, retry_after_s: float | None, wait_s: float
) -> None:
    assert poll_failed_s(failures, retry_after_s) == wait_s


def test_jitter_moves_a_wait_by_a_fifth_at_most() -> None:
    assert [jittered(10, chance) for chance in (0, 0.5, 1)] == pytest.approx([8, 10, 12])
