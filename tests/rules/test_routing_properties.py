"""What holds for every scenario, whatever is in it."""

import json
from random import Random
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dispatch.routing.explain import explain
from dispatch.routing.reasons import ALERTS, FLAGS, REASONS
from dispatch.routing.rendering import rendered
from dispatch.routing.replay import replay
from dispatch.routing.router import route
from dispatch.routing.scenario import documents_of, parse_scenario
from dispatch.routing.snapshot import canonical, snapshot
from tests.rules.arbitrary_scenarios import LITTLE, SOME, drawn, scenarios
from tests.rules.scenarios import decided

settings.register_profile("rules", max_examples=200, deadline=None)
settings.load_profile("rules")


def test_what_is_drawn_brings_up_every_outcome_flag_alert_and_reason_of_the_format() -> None:
    decisions = [decided(drawn(Random(seed))) for seed in range(1_500)]
    assert {decision.outcome for decision in decisions} == {"chosen", "waiting_capacity", "no_candidate"}
    assert {flag for decision in decisions for flag in decision.flags} == set(FLAGS)
    assert {alert for decision in decisions for alert in decision.alerts} == set(ALERTS)
    reasons = {finding.reason for decision in decisions for finding in decision.findings} - {None}
    assert set(REASONS) - reasons == {
        "strict_model",
        "provider_bound",
        "region_denied",
        "compliance_denied",
        "not_before",
    }


def result(document: dict[str, Any]) -> dict[str, Any]:
    return decided(document).as_json()


@given(scenarios())
def test_the_same_inputs_give_the_same_decision(document: dict[str, Any]) -> None:
    inputs = parse_scenario(document)
    assert route(inputs) == route(inputs) == route(parse_scenario(json.loads(json.dumps(document))))


@given(scenarios(), st.randoms())
def test_the_order_of_the_input_does_not_matter(document: dict[str, Any], random: Any) -> None:
    shuffled = json.loads(json.dumps(document))
    random.shuffle(shuffled["bindings"])
    for section in ("supplies", "channels", "groups"):
        entries = list(shuffled[section].items())
        random.shuffle(entries)
        shuffled[section] = dict(entries)
    before, after = parse_scenario(document), parse_scenario(shuffled)
    assert canonical(snapshot(before, route(before))) == canonical(snapshot(after, route(after)))


@given(scenarios())
def test_every_binding_is_in_the_result_once_with_one_verdict(document: dict[str, Any]) -> None:
    decision = result(document)
    assert len(decision["candidates"]) == len(document["bindings"])
    verdicts = [each["verdict"] for each in decision["candidates"].values()]
    taken = decision["outcome"] == "chosen"
    assert verdicts.count("chosen") == int(taken)
    assert verdicts.count("chosen") + verdicts.count("ranked") == len(decision["order"])
    assert decision["chosen"] == (decision["order"][0] if taken else None)
    for each in decision["candidates"].values():
        assert (each["reason"] in REASONS) == (each["verdict"] == "excluded")
        assert set(each) >= {"quote", "verdict", "reason"}
        assert ("band" in each) == (each["verdict"] != "excluded")


@given(scenarios())
def test_who_is_excluded_is_never_taken(document: dict[str, Any]) -> None:
    decision = decided(document)
    assert all(finding.reason is None for finding in decision.ranking)
    assert all(finding.free is not None and finding.free > 0 for finding in decision.ranking)


@given(scenarios())
def test_no_ceiling_is_ever_crossed(document: dict[str, Any]) -> None:
    decision = decided(document)
    for finding in decision.ranking:
        total = decision.limits.spent + (finding.quote or 0)
        assert total <= (decision.limits.policy or total)
        assert total <= (decision.limits.customer or total)


@given(scenarios(LITTLE, SOME))
def test_a_multiple_of_the_baseline_is_crossed_only_in_an_emergency(document: dict[str, Any]) -> None:
    decision = decided(document)
    assume(decision.baseline is not None and decision.ranking)
    tier, order = decision.ranking[0].candidate.tier, document["policy"]["order"]
    name = "stable" if tier == "exact" else "fallback"
    factor = document["policy"][f"{name}_cost_multiplier_limit"]
    free_of_it = tier == "exact" and order == "cost_first"
    crossed = any((finding.quote or 0) > (decision.baseline or 0) * factor for finding in decision.ranking)
    assert not crossed or free_of_it or "emergency_override" in decision.flags


@given(scenarios())
def test_flags_alerts_and_outcome_agree(document: dict[str, Any]) -> None:
    decision = result(document)
    chosen = decision["outcome"] == "chosen"
    assert decision["flags"] == [flag for flag in FLAGS if flag in decision["flags"]]
    assert decision["alerts"] == [alert for alert in ALERTS if alert in decision["alerts"]]
    assert chosen or not decision["flags"]
    assert ("emergency_override" in decision["flags"]) == ("emergency_override" in decision["alerts"])
    assert (decision["degradation"] is not None) == ("degradation_active" in decision["alerts"])
    assert (decision["layer"] is None) == (decision["outcome"] == "no_candidate")


@given(scenarios())
def test_the_orders_are_total(document: dict[str, Any]) -> None:
    ranking = decided(document).ranking
    assert [finding.position for finding in ranking] == list(range(1, len(ranking) + 1))
    assert all(finding.lost_by for finding in ranking[1:])


@settings(suppress_health_check=[HealthCheck.filter_too_much])  # most layers have one contender
@given(scenarios(LITTLE), st.data())
def test_taking_a_loser_away_never_changes_the_winner_but_through_pooled_bands_baseline_or_probe(
    document: dict[str, Any], data: st.DataObject
) -> None:
    document["policy"] |= {"min_samples": 1, "probe_every": 0}
    document["model"]["baseline"] = "1.50"
    for it in document["supplies"].values():
        it["samples"], it["successes"] = max(1, it["samples"]), max(1, it["successes"])
    before = decided(document)
    assume(len(before.ranking) > 1)
    loser = data.draw(st.sampled_from(before.ranking[1:])).candidate
    document["bindings"] = [
        each
        for each in document["bindings"]
        if (each["supply"], each["tier"]) != (loser.supply.id, loser.tier)
    ]
    assert decided(document).order[0] == before.order[0]


@given(scenarios(LITTLE, SOME, order="manual_priority"), st.integers(0, 1_000_000))
def test_a_higher_priority_never_makes_the_winner_lose(document: dict[str, Any], more: int) -> None:
    before = decided(document)
    assume(before.chosen is not None)
    assert before.chosen is not None
    for each in document["bindings"]:
        if (each["supply"], each["tier"]) == (before.chosen.supply.id, before.chosen.tier):
            each["priority"] = max(each["priority"], more)
    assert decided(document).order[0] == before.order[0]


@given(scenarios())
def test_a_strict_request_is_never_degraded(document: dict[str, Any]) -> None:
    document["request"]["degradation"] = "strict"
    decision = decided(document)
    assert decision.degradation is None
    assert all(finding.candidate.tier != "degraded" for finding in decision.ranking)


@given(scenarios())
def test_a_snapshot_replays_byte_for_byte_and_names_every_candidate(document: dict[str, Any]) -> None:
    inputs = parse_scenario(document)
    stored = json.loads(json.dumps(snapshot(inputs, route(inputs))))
    assert replay(stored, documents_of(document)) == []


@given(scenarios())
def test_the_four_steps_add_up(document: dict[str, Any]) -> None:
    inputs = parse_scenario(document)
    decision = route(inputs)
    it = explain(snapshot(inputs, decision))
    assert it.selected + it.ranked + it.excluded == it.candidates == len(document["bindings"])
    assert sum(len(step.removed) for step in it.steps) == it.excluded
    left = it.candidates
    for step in it.steps[:3]:
        left -= len(step.removed)
        assert len(step.remained) == left
    assert [place.candidate for place in it.places] == [finding.candidate.key for finding in decision.ranking]
    assert rendered(it).endswith(f"= {it.candidates} candidates\n")
