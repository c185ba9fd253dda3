"""Routing, example by example: who is dropped at which step and why, and what only some requests ask."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.types import Condition, Demands, RoutingInput
from tests.rules.routing_examples import FULL, only_reason
from tests.rules.scenarios import (
    VIDEO_CAPABILITY,
    channel,
    decided,
    exact,
    fallback,
    image_supply,
    per_request,
    per_second,
    reasons,
    scenario,
    supply,
)


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


def test_an_image_is_routed_without_a_trace_of_real_persons() -> None:
    document = scenario({"a": image_supply(), "b": image_supply(price=per_request("0.03"))}, modality="image")
    decision = decided(document)
    assert decision.order == ("b", "a")
    assert decision.layer == ("exact", None)
    assert not any("person" in (finding.reason or "") for finding in decision.findings)


def test_images_are_sold_by_the_request_only() -> None:
    document = scenario({"a": image_supply(price=per_second("0.30"))}, modality="image")
    assert reasons(document)["a"] == "billing_mode"
