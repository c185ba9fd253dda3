"""Routing, example by example: what each rule does, in the order of the pipeline."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from catalog.shape import VideoShape
from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.types import Condition, Demands, RoutingInput
from tests.rules.scenarios import (
    RULE,
    VIDEO_CAPABILITY,
    channel,
    decided,
    degraded,
    exact,
    fallback,
    fixed,
    image_supply,
    per_request,
    per_second,
    reasons,
    scenario,
    supply,
)

WITHOUT_VIDEOS = dict(VIDEO_CAPABILITY) | {"max_videos": 0, "max_audios": 0}
FULL: dict[str, Any] = {"capacity": 2, "used": 2}


def only_reason(it: dict[str, Any], **sections: Any) -> str | None:
    """Of one supply bound as exact."""
    return reasons(scenario({"a": it}, **sections))["a"]


# What a request costs


def test_a_bracket_is_quoted_whole_so_the_cheaper_second_wins_five_seconds() -> None:
    """0.30 a second; a bracket of 6.00 for 4 to 15 s; 0.25 a second, at least 8."""
    priced = {
        "by-second": supply(price=per_second("0.30")),
        "bracket": supply(price=fixed("6.00")),
        "minimum": supply(price=per_second("0.25", min_s=8)),
    }
    decision = decided(scenario(priced))
    quotes = {finding.candidate.key: finding.quote for finding in decision.findings}
    assert quotes == {"by-second": 1_500_000, "bracket": 6_000_000, "minimum": 2_000_000}
    assert decision.order == ("by-second", "minimum", "bracket")


def test_at_fifteen_seconds_the_minimum_no_longer_counts() -> None:
    priced = {
        "by-second": supply(price=per_second("0.30")),
        "minimum": supply(price=per_second("0.25", min_s=8)),
    }
    assert decided(scenario(priced, request={"duration_s": 15})).order == ("minimum", "by-second")


def test_the_expected_success_cost_counts_failures_in() -> None:
    """1.00 at p = 4.5/25 is dearer than 2.00 at p = 24.5/25."""
    tried = {
        "cheap-but-failing": supply(price=per_second("0.20"), samples=20, successes=0),
        "dear-but-sure": supply(price=per_second("0.40"), samples=20, successes=20),
    }
    decision = decided(scenario(tried))
    costs = {finding.candidate.key: finding.expected_cost for finding in decision.findings}
    assert decision.order[0] == "dear-but-sure"
    assert costs == {"cheap-but-failing": 5_555_556, "dear-but-sure": 2_040_817}


# The guardrails


def stable(*, override: bool, ceiling: str = "30.00", **model: Any) -> dict[str, Any]:
    """Only `dear` is healthy, at 6.00 where the baseline is 1.50."""
    supplies = {
        "cheap": supply(price=per_second("0.30"), health="circuit_open"),
        "dear": supply(price=fixed("6.00")),
    }
    policy = {"order": "stable_first", "stable_cost_multiplier_limit": 1.5, "max_cost": ceiling}
    return scenario(supplies, policy=policy, model={"emergency_override": override} | model)


def test_over_the_multiple_of_the_baseline_nobody_is_taken() -> None:
    decision = decided(stable(override=False))
    assert (decision.outcome, decision.baseline) == ("no_candidate", 1_500_000)
    assert reasons(stable(override=False)) == {"cheap": "supply_circuit_open", "dear": "over_stable_limit"}


def test_the_emergency_override_takes_it_with_a_mark_and_an_alert() -> None:
    decision = decided(stable(override=True))
    assert decision.order == ("dear",)
    assert decision.flags == ("emergency_override",)
    assert decision.alerts == ("emergency_override",)


@pytest.mark.parametrize(("ceiling", "outcome"), [("6.00", "chosen"), ("5.99", "no_candidate")])
def test_the_emergency_override_never_passes_the_absolute_ceiling(ceiling: str, outcome: str) -> None:
    decision = decided(stable(override=True, ceiling=ceiling))
    assert decision.outcome == outcome
    assert ("emergency_override" in decision.flags) == (outcome == "chosen")


def test_a_vain_override_returns_the_first_walk_whole() -> None:
    assert reasons(stable(override=True, ceiling="5.99"))["dear"] == "over_stable_limit"


def test_the_multiplier_is_compared_exactly() -> None:
    def dear(amount: str) -> str | None:
        supplies = {"cheap": supply(price=per_request("1.00")), "dear": supply(price=per_request(amount))}
        policy = {"order": "manual_priority", "stable_cost_multiplier_limit": 1.1}
        document = scenario(supplies, policy=policy, request={"billing_mode": "per_request"})
        return reasons(document)["dear"]

    assert dear("1.10") is None
    assert dear("1.100001") == "over_stable_limit"


def test_cost_first_needs_no_multiplier_in_tier_exact_but_in_fallback() -> None:
    supplies = {"cheap": supply(), "dear": supply(price=fixed("9.00")), "spare": supply(price=fixed("9.00"))}
    policy = {"fallback_cost_multiplier_limit": 2.0}
    document = scenario(supplies, [*exact("cheap", "dear"), *fallback("spare")], policy=policy)
    assert decided(document).order == ("cheap", "dear")
    document["supplies"]["cheap"]["health"] = document["supplies"]["dear"]["health"] = "circuit_open"
    assert reasons(document)["spare"] == "over_fallback_limit"


def test_without_an_exact_quote_there_is_no_baseline_and_no_multiplier() -> None:
    supplies = {"silent": supply(price=None), "spare": supply(price=fixed("9.00"))}
    decision = decided(scenario(supplies, [*exact("silent"), *fallback("spare")]))
    assert (decision.baseline, decision.order) == (None, ("spare",))


def test_the_baseline_counts_a_supply_that_was_tried_or_is_down() -> None:
    supplies = {"tried": supply(price=per_second("0.10")), "left": supply(price=per_second("0.30"))}
    decision = decided(scenario(supplies, job={"tried": ["tried"], "attempt": 2}))
    assert decision.baseline == 500_000


def test_the_baseline_does_not_count_what_an_operator_switched_off_or_what_can_not_do_it() -> None:
    supplies = {
        "off": supply(price=per_second("0.01"), state="disabled"),
        "unable": supply(
            price=per_second("0.02"), capability=dict(VIDEO_CAPABILITY) | {"resolutions": ["4k"]}
        ),
        "able": supply(price=per_second("0.30")),
    }
    assert decided(scenario(supplies)).baseline == 1_500_000


def test_what_the_job_has_spent_counts_against_both_ceilings() -> None:
    spent = {"spent": "29.00", "tried": ["b"], "attempt": 2}
    assert only_reason(supply(), job=spent, policy={"max_cost": "30.00"}) == "over_max_cost"
    assert only_reason(supply(), job=spent, request={"max_cost": "30.49"}) == "over_customer_max_cost"
    assert only_reason(supply(), job=spent, request={"max_cost": "30.50"}) is None


def test_a_currency_without_a_rate_is_no_price() -> None:
    yen = supply(price=per_second("40", currency="JPY"))
    assert only_reason(yen) == "no_price"
    assert decided(scenario({"a": yen}, fx={"JPY": "0.0065"})).findings[0].quote == 1_300_000


# Step by step: who is dropped and why


def test_the_first_step_that_fails_gives_the_one_reason() -> None:
    broken = supply(
        state="disabled",
        health="circuit_open",
        capability=dict(VIDEO_CAPABILITY) | {"modes": []},
        price=None,
        **FULL,
    )
    disabled_binding = [{"supply": "a", "tier": "exact", "enabled": False}]
    document = scenario({"a": broken}, disabled_binding, channels={"east": channel(state="disabled")})
    seen = [reasons(document)["a"]]
    for repair in (
        lambda: document["bindings"][0].update(enabled=True),
        lambda: document["supplies"]["a"].update(state="enabled"),
        lambda: document["channels"]["east"].update(state="draining"),
        lambda: document["channels"]["east"].update(state="enabled"),
        lambda: document["supplies"]["a"].update(capability=dict(VIDEO_CAPABILITY)),
        lambda: document["supplies"]["a"].update(health="healthy"),
        lambda: document["supplies"]["a"].update(used=0),
        lambda: document["supplies"]["a"].update(price=per_second("0.30")),
    ):
        repair()
        seen.append(reasons(document)["a"])
    assert seen == [
        "binding_disabled",
        "supply_disabled",
        "channel_disabled",
        "draining",
        "capability_missing",
        "supply_circuit_open",
        "capacity_full",
        "no_price",
        None,
    ]


def test_a_video_without_a_billing_mode_means_per_second() -> None:
    by_request = supply(price=per_request("2.00"))
    assert only_reason(by_request) == "billing_mode"
    assert only_reason(by_request, request={"billing_mode": "per_request"}) is None


def test_a_channel_is_told_before_its_supply_and_open_as_met() -> None:
    down = {"east": channel(health="disabled")}
    assert only_reason(supply(health="circuit_open"), channels=down) == "channel_health_disabled"
    assert only_reason(supply(health="disabled")) == "supply_health_disabled"


def test_unknown_slots_are_told_before_full_ones() -> None:
    assert only_reason(supply(unknown=2, **FULL)) == "unknown_slots_full"
    assert only_reason(supply(unknown=2, unknown_limit=3, **FULL)) == "capacity_full"
    assert only_reason(supply(), channels={"east": channel(capacity=100, unknown=5)}) == "unknown_slots_full"
    assert only_reason(supply(), channels={"east": channel(capacity=100, unknown=4)}) is None


def test_the_tightest_of_group_channel_and_supply_counts() -> None:
    groups = {"shared": {"capacity": 12, "used": 10}}
    document = scenario(
        {"a": supply(used=1)}, groups=groups, channels={"east": channel(used=3, group="shared")}
    )
    assert decided(document).findings[0].free == 2
    document["groups"]["shared"]["used"] = 13
    assert reasons(document)["a"] == "capacity_full"


@pytest.mark.parametrize(
    ("condition", "free"),
    [
        ({"health": "probing", "used": 0}, 1),
        ({"health": "recovering", "recovery_successes": 2, "used": 0}, 3),
        ({"health": "recovering", "recovery_successes": 3, "used": 1}, 4),
        ({"health": "recovering", "recovery_successes": 4, "used": 8, "used_in_epoch": 1}, 2),
        ({"health": "degraded", "used": 4}, 6),
    ],
)
def test_while_recovering_only_the_open_share_of_the_slots_is_free(
    condition: dict[str, Any], free: int
) -> None:
    assert (
        decided(scenario({"a": supply(capacity=10, **condition)}, channels={"east": channel(capacity=50)}))
        .findings[0]
        .free
        == free
    )


def test_a_refusal_stands_until_its_probe_is_due_and_then_marks_the_probe() -> None:
    def refused(**record: Any) -> Any:
        return decided(scenario({"a": supply()}, refusals=[{"supply": "a"} | record]))

    early = refused(state="cooldown", next_probe_at="2026-06-01T12:00:01Z")
    due = refused(state="cooldown", next_probe_at="2026-06-01T12:00:00Z")
    assert early.findings[0].reason == "refusal_cooldown"
    assert due.flags == ("refusal_probe",)
    assert refused(state="frozen").findings[0].reason == "refusal_frozen"


def test_a_supply_is_tried_at_most_once_in_whatever_tier_it_stands() -> None:
    document = scenario({"a": supply()}, [*exact("a"), *fallback("a")], job={"tried": ["a"], "attempt": 2})
    assert reasons(document) == {"a@exact": "already_tried", "a@fallback": "already_tried"}


# Layers


def test_fallback_is_entered_only_when_no_exact_supply_is_healthy() -> None:
    document = scenario({"a": supply(), "b": supply()}, [*exact("a"), *fallback("b")])
    assert reasons(document) == {"a": None, "b": "layer_not_reached"}
    document["supplies"]["a"]["health"] = "circuit_open"
    decision = decided(document)
    assert (decision.order, decision.alerts) == (("b",), ("exact_unavailable",))


def test_a_full_exact_supply_is_waited_for_and_no_alert_is_raised() -> None:
    document = scenario({"a": supply(**FULL), "b": supply()}, [*exact("a"), *fallback("b")])
    decision = decided(document)
    assert (decision.outcome, decision.alerts) == ("waiting_capacity", ())
    assert decision.layer is not None
    assert decision.layer.tier == "exact"


def test_a_saturated_exact_tier_may_spill_into_fallback_but_never_into_degraded() -> None:
    supplies = {"a": supply(**FULL), "b": supply(), "c": supply()}
    spill = {"spill_when_saturated": True}
    spilled = decided(scenario(supplies, [*exact("a"), *fallback("b"), *degraded("c")], policy=spill))
    assert (spilled.order, spilled.flags, spilled.alerts) == (("b",), ("spill",), ())
    dry = scenario(supplies, [*exact("a"), *degraded("c")], policy=spill)
    assert decided(dry).outcome == "waiting_capacity"
    assert reasons(dry)["c"] == "layer_not_reached"


def test_one_busy_probe_does_not_block_idle_fallback() -> None:
    probing = supply(health="probing", capacity=4, used=1)
    decision = decided(scenario({"a": probing, "b": supply()}, [*exact("a"), *fallback("b")]))
    assert (decision.order, decision.alerts) == (("b",), ("exact_unavailable",))


def test_a_busy_probe_is_waited_for_when_there_is_nobody_else() -> None:
    probing = supply(health="probing", capacity=4, used=1)
    document = scenario({"a": probing, "b": supply(health="circuit_open")}, [*exact("a"), *fallback("b")])
    decision = decided(document)
    assert (decision.outcome, decision.alerts) == ("waiting_capacity", ())
    assert decision.layer == ("exact", None)


def test_restricted_supplies_come_after_allowed_ones_for_real_persons_only() -> None:
    supplies = {
        "a": supply(price=per_second("0.90")),
        "r": supply(real_person="restricted", price=per_second("0.10")),
    }
    assert decided(scenario(supplies)).order == ("r", "a")
    document = scenario(supplies, request={"real_person": True})
    assert reasons(document) == {"a": None, "r": "real_person_restricted"}
    document["supplies"]["a"]["state"] = "draining"
    decision = decided(document)
    assert (decision.order, decision.layer) == (("r",), ("exact", "restricted"))


def test_real_persons_never_go_to_a_supply_that_denies_them() -> None:
    denied = supply(real_person="denied")
    assert only_reason(denied, request={"real_person": True}) == "real_person_denied"
    assert only_reason(denied) is None


# Degradation


def best_effort(**sections: Any) -> dict[str, Any]:
    """933 asked; the exact supply is out, and one that can do 900 is bound as degraded."""
    supplies = {"full": supply(health="circuit_open"), "lesser": supply(capability=WITHOUT_VIDEOS)}
    request = {"images": 9, "videos": 2, "audios": 1} | sections.pop("request", {})
    return scenario(supplies, [*exact("full"), *degraded("lesser")], request=request, **sections)


def test_933_is_delivered_as_900_when_every_933_supply_is_unavailable() -> None:
    decision = decided(best_effort())
    assert decision.order == ("lesser",)
    assert decision.alerts == ("exact_unavailable", "degradation_active")
    assert decision.degradation is not None
    assert decision.degradation.as_json() == {
        "degraded": True,
        "requested_profile": "933",
        "actual_profile": "900",
        "dropped_inputs": ["reference_videos", "reference_audios"],
    }
    assert isinstance(decision.shape, VideoShape)
    assert (decision.shape.images, decision.shape.videos, decision.shape.audios) == (9, 0, 0)


def test_the_reduced_request_must_pass_the_whole_pipeline_again() -> None:
    document = best_effort()
    document["supplies"]["lesser"]["capability"]["max_images"] = 8
    assert reasons(document)["lesser"] == "capability_missing"


def test_a_degraded_supply_is_quoted_for_the_reduced_request() -> None:
    document = best_effort()
    multipliers = [{"when": {"videos": 0}, "factor": "0.5"}]
    document["supplies"]["lesser"]["price"] = per_second("0.30", multipliers=multipliers)
    assert decided(document).ranking[0].quote == 750_000


@pytest.mark.parametrize(
    "strictness", [{"model": {"degradation": "strict"}}, {"request": {"degradation": "strict"}}]
)
def test_strict_never_degrades(strictness: dict[str, Any]) -> None:
    assert reasons(best_effort(**strictness))["lesser"] == "degradation_not_allowed"


def test_a_customer_can_not_loosen_a_strict_model() -> None:
    document = best_effort(model={"degradation": "strict"}, request={"degradation": "best_effort"})
    assert reasons(document)["lesser"] == "degradation_not_allowed"


@pytest.mark.parametrize("missing", ["verified", "published"])
def test_an_unproved_rule_serves_nobody(missing: str) -> None:
    document = best_effort()
    document["bindings"][1]["rule"] = dict(RULE) | {missing: False}
    assert reasons(document)["lesser"] == "degradation_rule_unpublished"


def test_1080p_asked_is_refused_rather_than_delivered_as_720p() -> None:
    only_720p = supply(capability=dict(VIDEO_CAPABILITY) | {"resolutions": ["720p"]})
    document = scenario({"a": only_720p}, request={"resolution": "1080p"})
    decision = decided(document)
    assert decision.outcome == "no_candidate"
    assert decision.findings[0].details == "resolution 1080p (can 720p)"


# Orders


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


# What only the product's own requests can ask


def asked(**demands: Any) -> RoutingInput:
    bindings = [*exact("a"), *fallback("b")]
    inputs = parse_scenario(scenario({"a": supply("east"), "b": supply("west")}, bindings))
    return replace(inputs, demands=Demands(**demands))


def found(inputs: RoutingInput) -> dict[str, str | None]:
    return {finding.candidate.key: finding.reason for finding in route(inputs).findings}


def test_a_bound_request_goes_only_to_its_supply_and_channel() -> None:
    assert found(asked(bound_supply="b")) == {"a": "provider_bound", "b": None}
    assert found(asked(bound_channel="north")) == {"a": "provider_bound", "b": "provider_bound"}


def test_strict_model_leaves_only_tier_exact() -> None:
    inputs = asked(strict_model=True)
    out = replace(inputs, supplies=dict(inputs.supplies) | {"a": Condition(health="circuit_open")})
    assert found(out) == {"a": "supply_circuit_open", "b": "strict_model"}


def test_a_region_or_a_guarantee_that_is_not_given_drops_the_supply() -> None:
    assert found(asked(regions=frozenset({"eu"})))["a"] == "region_denied"
    assert found(asked(compliance=frozenset({"no_training"})))["a"] == "compliance_denied"


def test_a_rejected_compile_is_a_missing_capability_and_a_lower_reason_than_the_document() -> None:
    refused = replace(asked(), compile_refusals={"a": "no end frame"})
    finding = route(refused).findings[0]
    assert (finding.reason, finding.details) == ("capability_missing", "no end frame")


def waiting(seconds: int) -> RoutingInput:
    inputs = asked()
    later = inputs.now + timedelta(seconds=seconds)
    return replace(inputs, supplies=dict(inputs.supplies) | {"a": Condition(not_before=later)})


def test_a_short_wait_that_the_provider_asked_for_counts_as_full_and_a_long_one_opens_the_next_layer() -> (
    None
):
    assert route(waiting(30)).outcome == "waiting_capacity"
    assert found(waiting(30)) == {"a": "not_before", "b": "layer_not_reached"}
    assert route(waiting(31)).order == ("b",)


def test_a_wait_that_is_over_holds_nobody_back() -> None:
    assert route(waiting(0)).order == ("a",)
    assert isinstance(waiting(0).now, datetime)


# Images


def test_an_image_is_routed_without_a_trace_of_real_persons() -> None:
    document = scenario({"a": image_supply(), "b": image_supply(price=per_request("0.03"))}, modality="image")
    decision = decided(document)
    assert decision.order == ("b", "a")
    assert decision.layer == ("exact", None)
    assert not any("person" in (finding.reason or "") for finding in decision.findings)


def test_images_are_sold_by_the_request_only() -> None:
    document = scenario({"a": image_supply(price=per_second("0.30"))}, modality="image")
    assert reasons(document)["a"] == "billing_mode"
