"""Routing on worked scenarios: a scenario in, the whole decision out."""

import json
from pathlib import Path
from typing import Any

import pytest

from dispatch.routing.replay import replay
from dispatch.routing.router import route
from dispatch.routing.scenario import documents_of, parse_scenario
from dispatch.routing.snapshot import snapshot

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "routing.json").read_text())


def test_all_worked_scenarios_are_here() -> None:
    assert len(VECTORS) == 72


@pytest.mark.parametrize("worked", VECTORS)
def test_a_worked_scenario_comes_out_exactly(worked: dict[str, Any]) -> None:
    assert route(parse_scenario(worked["scenario"])).as_json() == worked["decision"]


@pytest.mark.parametrize("worked", VECTORS)
def test_the_snapshot_of_a_worked_scenario_holds_its_decision_and_replays_byte_for_byte(
    worked: dict[str, Any],
) -> None:
    inputs = parse_scenario(worked["scenario"])
    stored = json.loads(json.dumps(snapshot(inputs, route(inputs))))
    assert stored["decision"] == _as_stored(worked)
    assert replay(stored, documents_of(worked["scenario"])) == []


def _as_stored(worked: dict[str, Any]) -> dict[str, Any]:
    """The decision; but what is stored of an image has no field for real persons, not even an empty one."""
    decision: dict[str, Any] = worked["decision"]
    if worked["scenario"]["model"]["modality"] == "video" or decision["layer"] is None:
        return decision
    return decision | {"layer": {"tier": decision["layer"]["tier"]}}
