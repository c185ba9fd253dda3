from dataclasses import replace
from datetime import date
from typing import Any

from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.shadow_report import Result, ShadowedRound, difference, report
from dispatch.routing.snapshot import snapshot
from dispatch.routing.types import Statistics
from tests.rules.scenarios import per_second, scenario, supply

MONDAY, TUESDAY = date(2026, 6, 1), date(2026, 6, 2)
DONE = Result("succeeded", 62.0, 2_000_000)


def round_of(shadow_order: str, result: Result = DONE, day: date = MONDAY, **a: Any) -> ShadowedRound:
    """a is healthy and dear, b degraded and cheap: stable_first takes a, cost_first b."""
    supplies = {"a": supply(price=per_second("0.40"), **a), "b": supply("west", health="degraded")}
    inputs = parse_scenario(scenario(supplies, policy={"order": "stable_first"}))
    statistics = {"a": Statistics(200, 196, p95_s=60.0), "b": Statistics(200, 196, p95_s=90.0)}
    policy = replace(inputs.policy, shadow_order=shadow_order)
    inputs = replace(inputs, policy=policy, statistics=statistics)
    stored = snapshot(inputs, route(inputs))
    return ShadowedRound(
        model=stored["model"]["slug"],
        day=day,
        currency="USD",
        shadow=stored["evidence"]["shadow"],
        candidates=stored["decision"]["candidates"],
        findings=stored["evidence"]["findings"],
        supplies=stored["supplies"],
        result=result,
    )


def test_two_orders_that_take_the_same_agree() -> None:
    assert difference(round_of("stable_first")) is None
    assert difference(round_of("cost_first", health="circuit_open")) is None


def test_a_difference_says_what_each_expected_and_why_the_shadows_pick_lost() -> None:
    found = difference(round_of("cost_first"))
    assert found is not None
    assert (found.real.candidate, found.shadow.candidate, found.reason) == ("a", "b", "health")
    assert (found.real.cost_micros, found.shadow.cost_micros) == (2_044_888, 1_533_666)
    assert (found.real.p95_s, found.shadow.p95_s) == (60.0, 90.0)
    assert (found.real.score, found.shadow.score) == (None, None)


def test_the_weighted_order_brings_its_scores() -> None:
    """So good a cost weighs more than the lead in health and latency, beyond the margin."""
    found = difference(round_of("weighted"))
    assert found is not None
    assert found.shadow.score is not None
    assert found.real.score is not None
    assert found.shadow.score > found.real.score


def test_rows_are_of_one_model_day_and_order_and_add_up() -> None:
    failed = Result("failed", None, 0)
    rounds = [
        round_of("cost_first"),
        round_of("cost_first", failed),
        round_of("cost_first", health="circuit_open"),
        round_of("stable_first"),
        round_of("cost_first", day=TUESDAY),
    ]
    rows = report(rounds)
    assert [(row.day, row.shadow_order, row.rounds, row.agreed) for row in rows] == [
        (TUESDAY, "cost_first", 1, 0),
        (MONDAY, "cost_first", 3, 1),
        (MONDAY, "stable_first", 1, 1),
    ]
    monday = rows[1]
    assert (monday.differed, monday.reasons, monday.picks) == (2, {"health": 2}, {("a", "b"): 2})
    assert monday.results == {"succeeded": 1, "failed": 1}
    assert (monday.real_seconds, monday.real_cost_micros) == (62.0, 1_000_000)
    assert (monday.real.cost_micros, monday.shadow.cost_micros) == (2_044_888, 1_533_666)
    assert rows[2].real.cost_micros is None, "no difference, nothing to average"
