"""When a rate is out of its own day: enough samples, beyond doubt, beyond a multiple of what is normal."""

import pytest

from dispatch.baselines import (
    Costs,
    RateRule,
    Share,
    Spans,
    has_shifted,
    is_dear,
    is_high,
    is_slow,
    limit_of,
)

RULE = RateRule(samples=20, floor=0.1, factor=2.0)
SURGE = RateRule(samples=5, floor=0.2, factor=2.0, ceiling=0.5)
NOTHING = Share()


@pytest.mark.parametrize(
    ("now", "before", "high"),
    [
        (Share(0, 1000), NOTHING, False),
        (Share(19, 19), NOTHING, False),  # too few to say anything
        (Share(20, 20), NOTHING, True),
        (Share(4, 20), NOTHING, False),  # 20 %, but perhaps only 8 %
        (Share(6, 20), NOTHING, True),
        (Share(40, 200), NOTHING, True),  # 20 % again, and beyond doubt
        (Share(40, 200), Share(10, 100), False),  # the day has 10 %: twice that is the limit
        (Share(60, 200), Share(10, 100), True),
        (Share(190, 200), Share(60, 100), True),  # a day of 60 % can still become worse
        (Share(170, 200), Share(60, 100), False),
    ],
)
def test_a_rate_is_high_when_even_its_lower_end_passes_the_limit(
    now: Share, before: Share, high: bool
) -> None:
    assert is_high(now, before, RULE) is high


@pytest.mark.parametrize(
    ("unknown", "sent", "surges"),
    [(4, 4, False), (3, 5, True), (5, 5, True), (3, 6, False), (5, 20, False), (8, 20, True), (2, 5, False)],
)
def test_a_surge_of_unknown_submissions_needs_five_and_a_fifth_beyond_doubt(
    unknown: int, sent: int, surges: bool
) -> None:
    assert is_high(Share(unknown, sent), NOTHING, SURGE) is surges


def test_the_limit_is_never_out_of_reach() -> None:
    assert limit_of(NOTHING, RULE) == 0.1
    assert limit_of(Share(2, 100), RULE) == 0.1
    assert limit_of(Share(30, 100), RULE) == 0.6
    assert limit_of(Share(60, 100), RULE) == 0.8
    assert limit_of(Share(100, 100), RULE) == 0.9
    assert limit_of(Share(100, 100), SURGE) == 0.5


def test_a_day_of_nothing_but_failures_makes_them_not_normal() -> None:
    """Else an alert would end by lasting for a day, and a channel would be sent to again."""
    nothing_else = Share(1000, 1000)
    assert is_high(Share(40, 40), nothing_else, RULE)
    assert is_high(Share(5, 5), nothing_else, SURGE)
    assert is_high(Share(80, 100), nothing_else, SURGE)
    assert not is_high(Share(50, 100), nothing_else, SURGE)
    assert not is_high(Share(0, 100), nothing_else, SURGE)


@pytest.mark.parametrize(
    ("now", "before", "shifted"),
    [
        (Share(60, 200), Share(10, 100), True),  # up
        (Share(10, 200), Share(30, 100), True),  # down
        (Share(0, 19), Share(30, 100), False),
        (Share(0, 200), Share(9, 100), False),  # what is below the floor may vanish
        (Share(0, 200), Share(6, 19), False),  # a day of too few samples is no normal
        (Share(50, 200), Share(30, 100), False),
    ],
)
def test_a_shift_is_one_in_either_direction(now: Share, before: Share, shifted: bool) -> None:
    assert has_shifted(now, before, RULE) is shifted


@pytest.mark.parametrize(
    ("now", "before", "slow"),
    [
        (Spans(151, 20), Spans(100, 20), True),
        (Spans(150, 20), Spans(100, 20), False),
        (Spans(900, 19), Spans(100, 500), False),
        (Spans(900, 500), Spans(100, 19), False),  # no slow without a normal
    ],
)
def test_slow_is_a_median_beyond_a_multiple_of_the_days_own(now: Spans, before: Spans, slow: bool) -> None:
    assert is_slow(now, before, 20, 1.5) is slow


def test_a_success_pays_for_the_failures_too() -> None:
    costs = Costs(ended=15, succeeded=8, micros=3_000_000) + Costs(ended=5, succeeded=2, micros=1_000_000)
    assert costs.per_success_micros == 400_000
    assert is_dear(costs, 20, 399_999)
    assert not is_dear(costs, 20, 400_000)
    assert not is_dear(costs, 21, 1)
    assert not is_dear(costs, 20, None)


def test_without_a_success_the_whole_is_the_least_that_one_costs() -> None:
    assert is_dear(Costs(ended=20, succeeded=0, micros=1_000_000), 20, 999_999)
