"""A publication's forecast beside what came of it, and how soon a place is full."""

from datetime import timedelta

import pytest

from dispatch.filling import Flow, time_to_full
from dispatch.forecasts import Actual, Forecast, compare

FORECAST = Forecast(
    {"a": 600, "b": 400}, recorded=1_010, replayed=1_000, success=0.95, cost_per_success_micros=200_000
)


def actual(a: int, b: int, good: float = 0.95, cost: int = 200_000) -> Actual:
    ended = a + b
    delivered = round(ended * good)
    return Actual({"a": a, "b": b}, ended, delivered, ended, delivered, cost * delivered)


def test_what_chance_explains_is_as_predicted() -> None:
    compared = compare(FORECAST, actual(58, 42))
    assert compared.verdict == "as_predicted"
    assert compared.share_error == pytest.approx(0.02)
    assert [share.supply for share in compared.shares] == ["a", "b"]
    assert (compared.success_is_off, compared.cost_is_off) == (False, False)


def test_a_share_beyond_chance_is_off_and_the_largest_difference_comes_first() -> None:
    compared = compare(FORECAST, Actual({"b": 70, "a": 20, "c": 10}))
    assert compared.verdict == "off"
    assert compared.worst is not None
    assert (compared.worst.supply, compared.worst.is_off) == ("a", True)
    assert compared.worst.difference == pytest.approx(-0.4)
    assert {share.supply: share.expected for share in compared.shares}["c"] == 0
    assert sum(share.difference for share in compared.shares) == pytest.approx(0)


def test_few_selections_are_given_more_room_and_hardly_any_no_verdict() -> None:
    assert compare(FORECAST, actual(9, 11)).verdict == "as_predicted", "15 points, of twenty"
    assert compare(FORECAST, actual(450, 550)).verdict == "off", "15 points, of a thousand"
    assert compare(FORECAST, actual(1, 18)).verdict == "too_few"
    assert compare(FORECAST, Actual()).verdict == "too_few"


def test_success_and_cost_are_judged_too_once_enough_have_ended() -> None:
    poor = compare(FORECAST, actual(600, 400, good=0.8))
    assert (poor.verdict, poor.success_is_off) == ("off", True)
    assert poor.success_difference == pytest.approx(-0.15)
    dear = compare(FORECAST, actual(600, 400, cost=260_000))
    assert (dear.verdict, dear.cost_is_off) == ("off", True)
    assert dear.cost_difference == pytest.approx(0.3)
    begun = Actual({"a": 600, "b": 400}, samples=4, successes=0, ended=4, delivered=0, spent_micros=800_000)
    assert compare(FORECAST, begun).verdict == "as_predicted", "four ends say nothing"


def test_without_a_replay_there_is_nothing_to_compare_with() -> None:
    compared = compare(Forecast(), actual(60, 40))
    assert (compared.verdict, compared.shares, compared.share_error) == ("no_forecast", (), None)


def test_both_are_read_as_they_were_kept() -> None:
    told = actual(3, 4)
    assert Actual.read(told.as_json()) == told
    assert Forecast.read(FORECAST.as_json()) == FORECAST
    assert Forecast.read({}) == Forecast()


@pytest.mark.parametrize(
    ("free", "flow", "minutes"),
    [
        (4, Flow(12, 4), 7.5),
        (4, Flow(4, 12), None),
        (4, Flow(), None),
        (0, Flow(0, 9), 0),
        (8, Flow(16, 0), 7.5),
    ],
)
def test_a_place_is_full_when_its_free_slots_are_used_up_at_the_rate_of_now(
    free: int, flow: Flow, minutes: float | None
) -> None:
    assert time_to_full(free, flow) == (None if minutes is None else timedelta(minutes=minutes))


def test_flows_of_several_supplies_add_up_to_their_channels() -> None:
    assert Flow(3, 1) + Flow(2, 2) == Flow(5, 3)
