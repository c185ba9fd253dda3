"""Routing, example by example: when the next layer opens, and what is delivered degraded."""

from typing import Any

import pytest

from catalog.shape import VideoShape
from tests.rules.routing_examples import FULL, only_reason
from tests.rules.scenarios import (
    RULE,
    VIDEO_CAPABILITY,
    decided,
    degraded,
    exact,
    fallback,
    per_second,
    reasons,
    scenario,
    supply,
)

WITHOUT_VIDEOS = dict(VIDEO_CAPABILITY) | {"max_videos": 0, "max_audios": 0}


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
