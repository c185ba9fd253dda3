"""The production gates, one by one: what shuts each, and that nothing else does."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from billing.pricing import parse_price
from catalog.capability import parse_capability
from catalog.degradation import Rule
from catalog.policy import parse_policy
from catalog.shape import VideoShape
from dispatch.gates import BoundSupply, Evidence, Example, Gate, judge

CAPABILITY = {
    "modes": ["text_to_video"],
    "durations_s": {"min": 4, "max": 15},
    "resolutions": ["720p"],
    "aspect_ratios": ["16:9"],
    "max_images": 9,
    "max_videos": 3,
}
WITHOUT_VIDEOS = CAPABILITY | {"max_videos": 0}
SHAPE = VideoShape(mode="text_to_video", duration_s=5, resolution="720p", images=9, videos=2)
RULE = Rule("933", "900", ("reference_videos",), verified=True, published=True)


def bound(supply: str = "a", tier: str = "exact", **values: Any) -> BoundSupply:
    document = values.pop("document", CAPABILITY)
    price = values.pop("price_document", {"mode": "per_second", "currency": "USD", "per_second": "0.10"})
    given: dict[str, Any] = {
        "enabled": True,
        "priority": 0,
        "states": ("enabled", "enabled"),
        "health": ("healthy", "healthy"),
        "has_credential": True,
        "capability": parse_capability("video", document),
        "capability_problem": "",
        "price": parse_price(price, "video"),
        "price_problem": "",
        "sunset_on": None,
    }
    return BoundSupply(supply, tier, **(given | values))


def evidence(*bindings: BoundSupply, **values: Any) -> Evidence:
    given: dict[str, Any] = {
        "modality": "video",
        "disclosure": "Videos may be left out.",
        "policy": parse_policy({"max_cost_micros": 1_000_000}),
        "policy_problem": "",
        "examples": (Example("example 1", SHAPE),),
        "rates": {},
        "replayed": 3,
        "replay_problems": (),
        "today": date(2026, 11, 30),
    }
    return Evidence(bindings=bindings or (bound(),), **(given | values))


def shut(found: Evidence) -> dict[int, Gate]:
    return {gate.number: gate for gate in judge(found) if not gate.passed}


def test_a_sound_model_passes_all_nine() -> None:
    gates = judge(evidence())
    assert [gate.number for gate in gates] == list(range(1, 10))
    assert all(gate.passed and not gate.fix for gate in gates)


@pytest.mark.parametrize("spoilt", [
    {"enabled": False},
    {"states": ("disabled", "enabled")},
    {"states": ("enabled", "draining")},
    {"has_credential": False},
])  # fmt: skip
def test_gate_1_wants_one_exact_binding_that_can_serve(spoilt: dict[str, Any]) -> None:
    assert set(shut(evidence(bound(**spoilt)))) == {1}
    assert shut(evidence(bound(**spoilt), bound("b"))) == {}


def test_gate_1_does_not_count_a_fallback() -> None:
    assert 1 in shut(evidence(bound(tier="fallback")))


def test_gate_2_names_the_supply_without_a_capability_in_force() -> None:
    spoilt = bound("b", "fallback", capability=None, capability_problem="v2 is not in force")
    found = shut(evidence(bound(), spoilt))
    assert set(found) == {2}
    assert found[2].measured == "b: v2 is not in force"


@pytest.mark.parametrize(
    ("price", "problem"),
    [
        ({"mode": "per_request", "currency": "USD", "per_request": "1.00"}, "charges per_request"),
        ({"mode": "per_second", "currency": "CNY", "per_second": "0.10"}, "no rate from CNY to USD"),
        (
            {"mode": "per_second", "currency": "USD", "per_second": "0.21"},
            "costs 1.05 USD, above the ceiling 1.00",
        ),
        (
            {"mode": "per_second", "currency": "USD", "brackets": [{"min_s": 6, "max_s": 9, "fixed": "0.5"}]},
            "no price",
        ),
    ],
)
def test_gate_3_wants_a_price_that_sells_the_examples(price: dict[str, Any], problem: str) -> None:
    found = shut(evidence(bound(price_document=price)))
    assert set(found) == {3}
    assert problem in found[3].measured


def test_gate_3_converts_by_the_rate() -> None:
    price = {"mode": "per_second", "currency": "CNY", "per_second": "1.42"}
    assert shut(evidence(bound(price_document=price), rates={"CNY": (14, 100)})) == {}
    assert set(shut(evidence(bound(price_document=price), rates={"CNY": (15, 100)}))) == {3}


def test_gate_3_lets_a_mode_pass_that_an_example_asks_for() -> None:
    by_request = replace(SHAPE, billing_mode="per_request")
    price = {"mode": "per_request", "currency": "USD", "per_request": "0.50"}
    examples = (Example("example 1", SHAPE), Example("example 2", by_request))
    assert shut(evidence(bound(), bound("b", price_document=price), examples=examples)) == {}


def test_gate_3_quotes_a_degraded_supply_for_what_it_would_execute() -> None:
    videos_cost_much = {
        "mode": "per_second",
        "currency": "USD",
        "per_second": "0.10",
        "multipliers": [{"when": {"videos": 2}, "factor": "9"}],
    }
    degraded = bound("b", "degraded", rule=RULE, document=WITHOUT_VIDEOS, price_document=videos_cost_much)
    assert shut(evidence(bound(), degraded)) == {}


def test_gate_4_wants_a_usable_rule_and_a_disclosure() -> None:
    degraded = bound("b", "degraded", rule=RULE, document=WITHOUT_VIDEOS)
    assert set(shut(evidence(bound(), degraded, disclosure=" "))) == {4}
    unverified = replace(degraded, rule=replace(RULE, published=False))
    assert shut(evidence(bound(), unverified))[4].measured == "b: its rule is not verified and published"
    assert shut(evidence(disclosure="")) == {}


def test_gate_5_wants_a_valid_policy_and_priorities_in_their_range() -> None:
    assert set(shut(evidence(policy=None, policy_problem="order: 'x' is none"))) == {5}
    assert set(shut(evidence(bound(priority=1_000_001)))) == {5}
    assert shut(evidence(bound(priority=1_000_000))) == {}


def test_gate_6_wants_examples_that_every_exact_supply_takes() -> None:
    assert set(shut(evidence(examples=()))) == {6}
    assert set(shut(evidence(bound(), bound("b", document=WITHOUT_VIDEOS)))) == {6}
    assert set(shut(evidence(bound(compile_problems=("example 1: fps 30",))))) == {6}
    assert shut(evidence(bound(), bound("b", "fallback", document=WITHOUT_VIDEOS))) == {}
    invalid = Example("example 2", None, "duration_s 99 (can 4 to 15)")
    assert set(shut(evidence(examples=(Example("example 1", SHAPE), invalid)))) == {6}


def test_gate_7_shuts_the_day_after_the_sunset() -> None:
    assert shut(evidence(bound(), bound("b", "fallback", sunset_on=date(2026, 11, 30)))) == {}
    assert set(shut(evidence(bound(), bound("b", "fallback", sunset_on=date(2026, 11, 29))))) == {7}


@pytest.mark.parametrize(
    "health", [("circuit_open", "healthy"), ("healthy", "circuit_open"), ("disabled", "healthy")]
)
def test_gate_8_wants_one_exact_supply_in_service(health: tuple[str, str]) -> None:
    assert set(shut(evidence(bound(health=health), bound("b", "fallback")))) == {8}
    assert shut(evidence(bound(health=health), bound("b", health=("probing", "degraded")))) == {}


def test_gate_9_names_what_cannot_be_decided_again() -> None:
    found = shut(evidence(replay_problems=("job_1: KeyError",)))
    assert set(found) == {9}
    assert found[9].measured == "job_1: KeyError"


def test_every_gate_is_measured_even_when_the_first_is_shut() -> None:
    spoilt = bound(enabled=False, sunset_on=date(2020, 1, 1), health=("circuit_open", "healthy"))
    found = shut(evidence(spoilt, examples=()))
    assert set(found) == {1, 6, 7, 8}
    assert all(gate.fix and gate.required for gate in found.values())
