"""Facts supposed otherwise: each does what it says, and what "why not" tells comes true."""

from collections import Counter
from random import Random

from dispatch.routing import filters
from dispatch.routing.counterfactual import why_not
from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.supposed import Supposition, supposed
from tests.rules.arbitrary_scenarios import SOME, drawn
from tests.rules.scenarios import channel, exact, scenario, supply


def test_r6_every_change_that_is_told_makes_the_loser_win_when_it_is_supposed() -> None:
    told: Counter[str] = Counter()
    for seed in range(200):
        order = {"order": "manual_priority"} if seed % 2 else {}
        inputs = parse_scenario(drawn(Random(seed), (SOME,), **order))
        for loser in {candidate.supply.id for candidate in inputs.candidates}:
            for change in why_not(inputs, loser).changes:
                decision = route(supposed(inputs, [change.supposition]))
                assert decision.order[:1] == (loser,), (seed, loser, change)
                told[change.kind] += 1
    assert set(told) == {"priority", "price", "health", "slots"}
    assert sum(told.values()) >= 50


def test_what_is_supposed_of_one_candidate_leaves_the_others() -> None:
    document = scenario(
        {"a": supply("west"), "b": supply("east")},
        exact("a", "b"),
        channels={"west": channel(), "east": channel()},
    )
    inputs = parse_scenario(document)
    worse = supposed(inputs, [Supposition("a", health="circuit_open", free=0)])
    assert (worse.supplies["a"].health, worse.channels["west"].health) == ("circuit_open", "healthy")
    assert filters.least_free(worse.candidates[0].supply, worse) == 0
    assert (worse.supplies["b"], worse.channels["east"]) == (inputs.supplies["b"], inputs.channels["east"])
    assert supposed(inputs, [Supposition("stranger", priority=1)]) == inputs
