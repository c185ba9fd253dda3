"""Routing, example by example: who stands in front of whom in one layer."""

from typing import Any

from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.types import RoutingInput
from tests.rules.scenarios import decided, exact, per_second, scenario, supply


def test_stable_first_puts_health_before_cost_and_cost_first_cost_before_health() -> None:
    supplies = {
        "well": supply(price=per_second("0.40")),
        "ill": supply(price=per_second("0.30"), health="degraded"),
    }
    assert decided(scenario(supplies, policy={"order": "stable_first"})).order == ("well", "ill")
    assert decided(scenario(supplies, policy={"order": "cost_first"})).order == ("ill", "well")


def test_health_is_the_worse_of_channel_and_supply() -> None:
    document = scenario({"a": supply("east"), "b": supply("west")}, policy={"order": "stable_first"})
    document["channels"]["east"]["health"] = "degraded"
    assert decided(document).order == ("b", "a")


def test_manual_priority_puts_the_higher_priority_first_and_the_others_never_read_it() -> None:
    supplies = {"cheap": supply(price=per_second("0.20")), "dear": supply(price=per_second("0.25"))}
    bindings = exact("cheap", "dear")
    bindings[1]["priority"] = 900
    orders = {
        order: decided(scenario(supplies, bindings, policy={"order": order})).order[0]
        for order in ("manual_priority", "cost_first", "stable_first")
    }
    assert orders == {"manual_priority": "dear", "cost_first": "cheap", "stable_first": "cheap"}


def test_equal_candidates_are_told_apart_by_free_slots_and_then_by_their_ids() -> None:
    supplies = {"c": supply(), "b": supply(), "a": supply(used=1)}
    decision = decided(scenario(supplies))
    assert decision.order == ("b", "c", "a")
    assert [finding.lost_by for finding in decision.ranking] == [None, "supply_id", "free_slots"]


def test_one_with_few_samples_takes_the_band_of_the_confident_ones() -> None:
    supplies = {"new": supply(samples=3, successes=0), "known": supply(samples=400, successes=392)}
    decision = decided(scenario(supplies, policy={"order": "stable_first"}))
    assert len({finding.band for finding in decision.findings}) == 1


def test_nobody_confident_means_band_0_for_all() -> None:
    supplies = {"a": supply(samples=3, successes=0), "b": supply(samples=19, successes=19)}
    assert {finding.band for finding in decided(scenario(supplies)).findings} == {0}


def probing(number: int, attempt: int = 1, **policy: Any) -> RoutingInput:
    supplies = {"well": supply(), "back": supply(health="recovering", recovery_successes=2)}
    job = {"selection_number": number, "attempt": attempt}
    return parse_scenario(
        scenario(supplies, policy={"order": "stable_first", "probe_every": 20} | policy, job=job)
    )


def test_every_twentieth_selection_puts_a_recovering_supply_in_front() -> None:
    decision = route(probing(40))
    assert (decision.order, decision.flags) == (("back", "well"), ("probe",))
    assert decision.ranking[1].lost_by == "probe"
    assert route(probing(41)).flags == ()


def test_a_probe_is_never_a_second_attempt_nor_made_by_another_order_nor_when_switched_off() -> None:
    assert route(probing(40, attempt=2)).flags == ()
    assert route(probing(40, order="cost_first")).flags == ()
    assert route(probing(40, probe_every=0)).flags == ()


def test_a_probe_needs_a_healthy_candidate_to_be_put_in_front_of() -> None:
    document = scenario(
        {"a": supply(health="probing"), "b": supply(health="recovering", recovery_successes=4)},
        policy={"order": "stable_first", "probe_every": 1},
    )
    assert decided(document).flags == ()
