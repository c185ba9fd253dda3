from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from catalog.degradation import Rule
from dispatch.routing.effect import (
    Draft,
    DraftBinding,
    NotReplayable,
    Pick,
    Present,
    Replayed,
    pick,
    summed_up,
    under,
    unknown_to,
)
from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.types import Demands, RoutingInput, Statistics
from tests.rules.scenarios import channel, per_second, scenario, supply

NOBODY_NEW = Present()
RULE = Rule("933", "900", ("reference_videos",), verified=True, published=True)


def recorded(**changes: Any) -> RoutingInput:
    """a is cheaper than b; both are healthy and free."""
    supplies = {"a": supply(price=per_second("0.30")), "b": supply("west", price=per_second("0.40"))}
    return parse_scenario(scenario(supplies, **changes))


def draft_of(inputs: RoutingInput, *bindings: DraftBinding, **policy: Any) -> Draft:
    own = tuple(
        DraftBinding(it.supply.id, it.tier, it.priority, it.enabled, it.rule) for it in inputs.candidates
    )
    return Draft(inputs.model, replace(inputs.policy, **policy), inputs.policy_version, bindings or own)


def chosen(inputs: RoutingInput, draft: Draft, present: Present = NOBODY_NEW) -> str | None:
    candidate = route(under(inputs, draft, present)).chosen
    return None if candidate is None else candidate.supply.id


def test_a_draft_that_changes_nothing_decides_the_same() -> None:
    inputs = recorded()
    again = under(inputs, draft_of(inputs), NOBODY_NEW)
    assert route(again).as_json() == route(inputs).as_json()


def test_a_priority_of_the_draft_wins_under_the_drafts_order() -> None:
    inputs = recorded()
    bindings = (DraftBinding("a", "exact", 1), DraftBinding("b", "exact", 2))
    assert chosen(inputs, draft_of(inputs, *bindings)) == "a"
    assert chosen(inputs, draft_of(inputs, *bindings, order="manual_priority")) == "b"


def test_a_binding_that_the_draft_leaves_out_is_no_candidate() -> None:
    inputs = recorded()
    assert chosen(inputs, draft_of(inputs, DraftBinding("b", "exact"))) == "b"


def test_health_and_slots_stay_as_they_were_recorded() -> None:
    supplies = {"a": supply(used=5), "b": supply("west", health="circuit_open")}
    inputs = parse_scenario(scenario(supplies))
    again = under(
        inputs, draft_of(inputs, DraftBinding("a", "exact"), DraftBinding("b", "fallback")), NOBODY_NEW
    )
    assert route(again).outcome == "waiting_capacity"


def test_a_supply_that_the_round_did_not_know_is_taken_as_healthy_and_free() -> None:
    stranger = parse_scenario(scenario({"c": supply("west", price=per_second("0.10"))})).candidates[0].supply
    inputs = parse_scenario(scenario({"a": supply()}, channels={"east": channel()}))
    draft = draft_of(inputs, DraftBinding("a", "exact"), DraftBinding("c", "exact"))
    assert chosen(inputs, draft, Present({"c": stranger})) == "c"
    assert unknown_to(inputs, draft) == ("c",)


def test_a_new_supply_on_a_recorded_channel_shares_that_channels_recorded_state() -> None:
    stranger = parse_scenario(scenario({"c": supply(price=per_second("0.10"))})).candidates[0].supply
    channels = {"east": channel(health="circuit_open")}
    inputs = parse_scenario(scenario({"a": supply()}, channels=channels))
    draft = draft_of(inputs, DraftBinding("c", "exact"))
    assert chosen(inputs, draft, Present({"c": stranger})) is None


def test_a_supply_that_is_nowhere_makes_the_round_not_replayable() -> None:
    inputs = recorded()
    with pytest.raises(NotReplayable, match="supply c has no published capability"):
        under(inputs, draft_of(inputs, DraftBinding("c", "exact")), NOBODY_NEW)


def test_amounts_of_another_currency_are_not_compared() -> None:
    inputs = recorded()
    with pytest.raises(NotReplayable, match="recorded in USD, the draft's policy counts EUR"):
        under(inputs, draft_of(inputs, currency="EUR"), NOBODY_NEW)


@pytest.mark.parametrize(
    ("model", "asked", "result"), [("strict", "strict", "b"), ("best_effort", "strict", None)]
)
def test_only_a_customers_own_wish_for_strict_outlives_a_draft_that_degrades(
    model: str, asked: Any, result: str | None
) -> None:
    """Admission writes the model's mode into each request, so a strict model's requests all say strict."""
    inputs = recorded(model={"degradation": model})
    inputs = replace(inputs, demands=Demands(degradation=asked))
    draft = draft_of(inputs, DraftBinding("b", "degraded", rule=RULE))
    draft = replace(draft, model=replace(draft.model, degradation="best_effort"))
    assert chosen(inputs, draft) == result


def replayed(name: str, before: Pick, after: Pick) -> Replayed:
    return Replayed(name, before, after, assumed=("c",) if after.supply == "c" else ())


A = Pick("chosen", "a", 1_500_000, Fraction(9, 10))
C = Pick("chosen", "c", 1_000_000, Fraction(7, 10))
WAITS, NONE = Pick("waiting_capacity"), Pick("no_candidate")


def test_the_effect_adds_up() -> None:
    rounds = [
        replayed("r1", A, C),
        replayed("r2", A, C),
        replayed("r3", A, A),
        replayed("r4", A, WAITS),
        replayed("r5", NONE, C),
        replayed("r6", WAITS, NONE),
    ]
    effect = summed_up(9, rounds, {"gone": 3})
    assert (effect.recorded, effect.replayed, effect.not_replayed) == (9, 6, {"gone": 3})
    assert effect.changed == 5
    assert [(it.before, it.after, it.rounds) for it in effect.moves] == [
        ("a", "c", 2),
        ("a", "waiting_capacity", 1),
        ("no_candidate", "c", 1),
        ("waiting_capacity", "no_candidate", 1),
    ]
    assert sum(it.rounds for it in effect.moves) == effect.changed
    assert (effect.lost, effect.gained) == ({"waiting_capacity": 1}, 1)
    assert effect.assumed == {"c": 3}
    assert effect.examples == ("r1", "r2", "r4", "r5", "r6")


def test_cost_and_success_are_compared_only_where_both_chose() -> None:
    effect = summed_up(3, [replayed("r1", A, C), replayed("r2", A, WAITS), replayed("r3", A, A)], {})
    assert effect.compared == 2
    assert effect.cost_difference_micros == -500_000
    assert effect.success_difference == pytest.approx(-0.1)


def test_nothing_recorded_is_no_effect() -> None:
    effect = summed_up(0, [], {})
    assert (effect.changed, effect.moves, effect.success_before) == (0, (), 0.0)


def test_a_pick_is_read_from_the_stored_decision_by_the_supply_of_the_chosen_tier() -> None:
    """Bound in two tiers, the supply stands under two keys."""
    supplies = {"a": supply(price=per_second("0.30"), samples=20, successes=18)}
    bindings: list[dict[str, Any]] = [
        {"supply": "a", "tier": "fallback"},
        {"supply": "a", "tier": "exact", "enabled": False},
    ]
    inputs = parse_scenario(scenario(supplies, bindings))
    found = pick(route(inputs).as_json(), {"a": Statistics(20, 18)})
    assert found == Pick("chosen", "a", 1_500_000, Fraction(45, 50))
