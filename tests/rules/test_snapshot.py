import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dispatch.routing.replay import ReplayError, inputs_from_snapshot, replay
from dispatch.routing.router import route
from dispatch.routing.scenario import documents_of, parse_scenario
from dispatch.routing.snapshot import canonical, snapshot
from dispatch.routing.types import Condition, Demands, GroupCondition, RoutingInput, Statistics
from tests.rules.scenarios import (
    channel,
    degraded,
    exact,
    fallback,
    image_supply,
    per_second,
    scenario,
    supply,
)

LONG = "sup_0000000000000000000000000"  # ids are 30 characters


def twenty() -> dict[str, Any]:
    """Twenty candidates, each with a channel of its own, under ids as long as they come."""
    names = [f"{LONG}{number:02}" for number in range(20)]
    channels = {f"channel-of-{name}": channel(used=3, unknown=1, group="shared") for name in names}
    supplies = {
        name: supply(
            f"channel-of-{name}", used=2, unknown=1, real_person="restricted", price=per_second("0.31")
        )
        for name in names
    }
    bindings = [*exact(*names[:10]), *fallback(*names[10:15]), *degraded(*names[15:])]
    groups = {"shared": {"capacity": 500, "used": 20}}
    return scenario(supplies, bindings, channels=channels, groups=groups)


def taken(document: dict[str, Any], **changes: Any) -> tuple[RoutingInput, dict[str, Any]]:
    """The inputs and their snapshot as it comes back from storage."""
    inputs = replace(parse_scenario(document), **changes)
    return inputs, json.loads(json.dumps(snapshot(inputs, route(inputs))))


def test_a_snapshot_of_twenty_candidates_stays_under_16_kib() -> None:
    inputs = parse_scenario(twenty())
    inputs = replace(inputs, policy=replace(inputs.policy, shadow_order="weighted"), request_hash="0" * 64)
    assert len(canonical(snapshot(inputs, route(inputs)))) < 16 * 1024


def test_everything_that_only_the_product_can_ask_survives_the_round_trip() -> None:
    document = scenario({"a": supply(), "b": supply("west")}, [*exact("a"), *fallback("b")])
    document["channels"]["east"]["group"] = "shared"
    document["groups"] = {"shared": {"capacity": 9, "used": 1}}
    later = parse_scenario(document).now + timedelta(seconds=20)
    inputs, stored = taken(
        document,
        demands=Demands(
            regions=frozenset({"eu", "us"}), compliance=frozenset({"no_training"}), strict_model=True
        ),
        supplies={"a": Condition(not_before=later), "b": Condition(unknown=1)},
        groups={"shared": GroupCondition(used=1, not_before=later)},
        statistics={"a": Statistics(30, 28, p95_s=61.5, quality=0.75)},
        compile_refusals={"a": "no end frame"},
        request_hash="f" * 64,
    )
    again = inputs_from_snapshot(stored, documents_of(document))
    for name in (
        "now",
        "model",
        "policy",
        "shape",
        "demands",
        "job",
        "channels",
        "supplies",
        "groups",
        "refusals",
    ):
        assert getattr(again, name) == getattr(inputs, name), name
    assert replay(stored, documents_of(document)) == []


def test_a_compile_refusal_that_decided_is_in_the_snapshot_and_decides_again() -> None:
    document = scenario({"a": supply(), "b": supply()})
    _, stored = taken(document, compile_refusals={"a": "no end frame"})
    assert stored["bindings"][0]["compile_refusal"] == "no end frame"
    assert replay(stored, documents_of(document)) == []


def test_a_changed_document_is_refused_not_replayed() -> None:
    document = twenty()
    _, stored = taken(document)
    documents = documents_of(document)
    documents[f"price:{LONG}03"] = per_second("0.32")
    with pytest.raises(ReplayError, match="is not the one that was routed by"):
        replay(stored, documents)


def test_a_missing_document_is_named() -> None:
    document = twenty()
    _, stored = taken(document)
    documents = documents_of(document)
    del documents["policy"]
    with pytest.raises(ReplayError, match="policy: its document was not given"):
        replay(stored, documents)


def test_another_schema_is_refused() -> None:
    _, stored = taken(twenty())
    with pytest.raises(ReplayError, match="schema 2"):
        replay(stored | {"schema": 2}, {})


def test_a_decision_that_differs_is_told_by_its_path() -> None:
    document = scenario({"a": supply(), "b": supply()})
    _, stored = taken(document)
    stored["decision"]["candidates"]["b"]["quote"] = 5
    assert replay(stored, documents_of(document)) == ["decision.candidates.b.quote: recorded 5, now 1500000"]


def test_the_snapshot_of_an_image_has_no_trace_of_real_persons() -> None:
    _, stored = taken(scenario({"a": image_supply(), "b": image_supply(state="draining")}, modality="image"))
    assert stored["decision"]["layer"] == {"tier": "exact"}
    assert "person" not in json.dumps(stored)


def test_a_snapshot_tells_step_and_key_of_each_candidate() -> None:
    supplies = {"a": supply(), "b": supply(used=1), "c": supply(health="circuit_open")}
    _, stored = taken(scenario(supplies))
    findings = stored["evidence"]["findings"]
    assert findings["a"] == {"health": "healthy", "position": 1}
    assert findings["b"] == {"health": "healthy", "position": 2, "lost_by": "free_slots"}
    assert findings["c"] == {"health": "circuit_open", "step": 8}


# The second order


def shadowed(name: str, **changes: Any) -> dict[str, Any]:
    supplies = {"cheap": supply(price=per_second("0.30"), used=4), "free": supply(price=per_second("0.31"))}
    inputs = parse_scenario(scenario(supplies))
    policy = replace(inputs.policy, shadow_order=name)
    _, stored = taken(scenario(supplies), policy=policy, **changes)
    shadow: dict[str, Any] = stored["evidence"]["shadow"]
    assert stored["decision"]["chosen"] == "cheap"
    return shadow


def test_a_second_order_is_stored_beside_the_real_one_and_never_executed() -> None:
    assert shadowed("manual_priority") == {"name": "manual_priority", "order": ["cheap", "free"]}


def test_the_weighted_order_counts_quality_speed_and_free_slots_in() -> None:
    slow = Statistics(200, 196, p95_s=590.0, quality=0.1)
    quick = Statistics(200, 196, p95_s=40.0, quality=0.9)
    shadow = shadowed("weighted", statistics={"cheap": slow, "free": quick})
    scores = dict(shadow["order"])
    assert list(scores) == ["free", "cheap"]
    assert 0 < scores["cheap"] < scores["free"] < 1_000_000


def test_a_small_advantage_does_not_overtake_the_leader() -> None:
    shadow = shadowed(
        "weighted",
        statistics={"cheap": Statistics(200, 196, quality=0.8), "free": Statistics(200, 196, quality=0.98)},
    )
    scores = dict(shadow["order"])
    assert list(scores) == ["cheap", "free"]
    assert 0 < scores["free"] - scores["cheap"] <= 20_000
