import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from dispatch.routing.counterfactual import Change, NotBound, WhyNot, why_not
from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from tests.rules.arbitrary_scenarios import SOME, drawn
from tests.rules.scenarios import (
    channel,
    decided,
    exact,
    fallback,
    image_supply,
    per_request,
    per_second,
    scenario,
    supply,
)


def asked(document: dict[str, Any], name: str) -> WhyNot:
    return why_not(parse_scenario(document), name)


def change_of(answer: WhyNot, kind: str, subject: str) -> Change:
    return next(it for it in answer.changes if (it.kind, it.subject) == (kind, subject))


def kinds(answer: WhyNot) -> list[tuple[str, str]]:
    return [(it.kind, it.subject) for it in answer.changes]


def by_hand(a: int, b: int, **changes: Any) -> dict[str, Any]:
    """Two equal supplies, but for their priorities and their prices."""
    bindings = [
        {"supply": "a", "tier": "exact", "priority": a},
        {"supply": "b", "tier": "exact", "priority": b},
    ]
    supplies = {"a": supply(price=per_second("0.30")), "b": supply(price=per_second("0.40"))}
    return scenario(supplies, bindings, policy={"order": "manual_priority"}, **changes)


def test_a_priority_just_above_the_winners_is_enough_where_the_winner_is_cheaper() -> None:
    found = change_of(asked(by_hand(900_000, 700_000), "b"), "priority", "b")
    assert (found.before, found.after) == (700_000, 900_001)
    assert str(found.note) == "b would have won with priority 900001 or higher; it had 700000."


def test_an_equal_priority_is_enough_where_the_loser_is_cheaper() -> None:
    assert change_of(asked(by_hand(700_000, 900_000), "a"), "priority", "a").after == 900_000


def test_against_the_highest_priority_only_the_winners_own_can_be_lowered() -> None:
    found = change_of(asked(by_hand(1_000_000, 1_000_000), "b"), "priority", "a")
    assert found.after == 999_999
    assert ("priority", "b") not in kinds(asked(by_hand(1_000_000, 1_000_000), "b"))


def test_priority_is_never_offered_where_the_order_does_not_read_it() -> None:
    answer = asked(by_hand(900_000, 700_000) | {"policy": {"order": "cost_first"}}, "b")
    assert "priority" not in {it.kind for it in answer.changes}


def test_a_full_winner_would_have_let_the_second_win() -> None:
    found = change_of(asked(by_hand(2, 1), "b"), "slots", "a")
    assert (found.before, found.after) == (5, 0)


def test_the_least_health_that_is_enough_is_told_with_the_places_that_must_have_it() -> None:
    supplies = {
        "a": supply("west", health="degraded"),
        "b": supply("east", health="circuit_open"),
    }
    channels = {"east": channel(health="circuit_open"), "west": channel()}
    document = scenario(supplies, channels=channels, policy={"order": "stable_first"})
    found = change_of(asked(document, "b"), "health", "b")
    assert (found.before, found.after) == ("circuit_open", "healthy")
    assert "the supply and channel east had been healthy" in str(found.note)


def test_as_many_successes_of_a_recovery_are_asked_as_give_it_the_slots_that_it_lacks() -> None:
    """Under stable_first, between two that recover, the one with more free slots."""
    supplies = {
        "a": supply("west", health="recovering", recovery_successes=2, capacity=8),
        "b": supply(health="probing", capacity=8),
    }
    found = change_of(asked(scenario(supplies, policy={"order": "stable_first"}), "b"), "health", "b")
    assert found.after == "recovering"
    assert "with 3 successes" in str(found.note)


def test_a_probe_is_enough_where_nobody_else_is_left() -> None:
    supplies = {"a": supply(state="disabled"), "b": supply("west", health="circuit_open")}
    found = change_of(asked(scenario(supplies), "b"), "health", "b")
    assert found.after == "probing"


@pytest.mark.parametrize(
    ("changes", "free"),
    [({"capacity": 5, "used": 5}, 1), ({"capacity": 5, "used": 3, "unknown": 2, "unknown_limit": 3}, 1)],
)
def test_one_free_slot_is_enough_for_the_cheaper_supply_that_was_full(
    changes: dict[str, Any], free: int
) -> None:
    document = scenario({"a": supply("west"), "b": supply(price=per_second("0.10"), **changes)})
    found = change_of(asked(document, "b"), "slots", "b")
    assert (found.before, found.after) == (0, free)


def test_slots_held_by_unknown_outcomes_are_named_as_such() -> None:
    full = supply(price=per_second("0.10"), unknown=2, unknown_limit=2)
    found = change_of(asked(scenario({"a": supply("west"), "b": full}), "b"), "slots", "b")
    assert "whose outcome is not known" in str(found.note)


def test_more_free_slots_than_there_are_is_no_answer() -> None:
    """By slots alone b, with 2 of them, never passes a's 5 free ones."""
    document = scenario({"a": supply("west"), "b": supply(capacity=2, used=1)})
    assert ("slots", "b") not in kinds(asked(document, "b"))


@pytest.mark.parametrize("modality", ["video", "image"])
def test_the_highest_quote_that_would_have_won_is_told_to_the_micro(modality: str) -> None:
    """a is quoted 1.50; b wins only below it, since the last key of equals prefers a."""
    if modality == "video":
        supplies = {"a": supply(price=per_second("0.30")), "b": supply("west", price=per_second("0.40"))}
    else:
        supplies = {
            "a": image_supply(price=per_request("1.50")),
            "b": image_supply(price=per_request("2.00")),
        }
    inputs = parse_scenario(scenario(supplies, modality=modality))
    found = change_of(why_not(inputs, "b"), "price", "b")
    assert (found.before, found.after) == (2_000_000, 1_499_999)


def test_a_supply_without_a_price_is_told_one_that_would_have_won() -> None:
    document = scenario({"a": supply(price=per_second("0.30")), "b": supply("west", price=None)})
    found = change_of(asked(document, "b"), "price", "b")
    assert found.before is None
    assert 0 < int(found.after) <= 1_500_000


def test_an_excluded_ceiling_is_met_by_the_price_alone() -> None:
    dear = {"a": supply(price=per_second("0.30")), "b": supply("west", price=per_second("9.00"))}
    document = scenario(dear, policy={"order": "stable_first", "max_cost": "3.00"})
    answer = asked(document, "b")
    assert {it.kind for it in answer.changes} == {"price"}


def test_two_obstacles_are_no_single_change() -> None:
    """Open, and full as well; bound to another region of what it can do."""
    supplies = {"a": supply("west"), "b": supply(health="circuit_open", used=5)}
    assert asked(scenario(supplies), "b").changes == ()
    supplies["b"] = supply(capability={**supply()["capability"], "resolutions": ["1080p"]})
    answer = asked(scenario(supplies), "b")
    assert answer.changes == ()
    assert answer.findings[0].reason == "capability_missing"


def test_the_chosen_supply_needs_no_change_and_a_stranger_has_no_answer() -> None:
    document = scenario({"a": supply(price=per_second("0.10")), "b": supply()})
    assert asked(document, "a").won
    assert asked(document, "a").changes == ()
    with pytest.raises(NotBound):
        asked(document, "c")


def test_a_fallback_behind_a_healthy_exact_layer_is_told_that_nothing_single_helps() -> None:
    document = scenario({"a": supply(), "b": supply("west")}, [*exact("a"), *fallback("b")])
    assert asked(document, "b").changes == ()


def test_a_fallback_wins_by_spilling_when_the_exact_one_is_full() -> None:
    document = scenario(
        {"a": supply(), "b": supply("west")},
        [*exact("a"), *fallback("b")],
        policy={"spill_when_saturated": True},
    )
    assert kinds(asked(document, "b")) == [("slots", "a")]


def test_asking_changes_nothing_of_the_round() -> None:
    inputs = parse_scenario(by_hand(900_000, 700_000))
    before = route(inputs).as_json()
    why_not(inputs, "b")
    assert route(inputs).as_json() == before
    assert replace(inputs) == inputs


def changed(document: dict[str, Any], loser: str, change: Change) -> dict[str, Any]:
    """The document as an operator would change it."""
    made = json.loads(json.dumps(document))
    subject, _, tier = change.subject.partition("@")
    supply = made["supplies"][subject]
    if change.kind == "priority":
        for binding in made["bindings"]:
            if binding["supply"] == subject and tier in ("", binding["tier"]):
                binding["priority"] = change.after
    elif change.kind == "price":
        supply["price"] = quoting(document, loser, int(change.after))
    elif change.kind == "health":
        for place in (supply, made["channels"][supply["channel"]]):
            name = "the supply" if place is supply else f"channel {supply['channel']}"
            if name in change.note.values["places"]:
                place |= {"health": change.after, "used_in_epoch": 0}
                place["recovery_successes"] = int(change.note.values["successes"]) or None
    elif change.after == 0:
        supply["used"] += change.before
        if supply.get("used_in_epoch") is not None:
            supply["used_in_epoch"] += change.before
    return made


def quoting(document: dict[str, Any], loser: str, micros: int) -> dict[str, Any]:
    """A price in the form of the scenario that comes to so much for its request."""
    request, price = document["request"], document["supplies"][loser]["price"]
    mode = price["mode"] if price else request.get("billing_mode") or "per_second"
    if document["model"]["modality"] == "image" or mode == "per_request":
        each = Fraction(micros, 1_000_000 * request.get("n", 1))
        return per_request(f"{float(each):.12f}")
    amount, seconds = f"{micros // 1_000_000}.{micros % 1_000_000:06}", request["duration_s"]
    bracket = {"min_s": seconds, "max_s": seconds, "fixed": amount}
    return {"mode": "per_second", "currency": "USD", "brackets": [bracket]}


def test_every_change_that_is_told_makes_the_loser_win_when_it_is_made() -> None:
    told: Counter[str] = Counter()
    for seed in range(300):
        order = {"order": "manual_priority"} if seed % 2 else {}
        document = drawn(Random(seed), (SOME,), **order)
        for loser in {binding["supply"] for binding in document["bindings"]}:
            for change in asked(document, loser).changes:
                is_own = change.subject.partition("@")[0] == loser
                kind = "full" if change.kind == "slots" and not is_own else change.kind
                told[kind] += 1
                if kind != "slots":
                    made = decided(changed(document, loser, change))
                    assert made.order[:1] == (loser,), (seed, loser, change)
    assert min(told.values()) >= 5, told
    assert set(told) == {"priority", "price", "health", "slots", "full"}
