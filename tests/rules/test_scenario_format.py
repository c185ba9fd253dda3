import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from catalog.document import DocumentError
from dispatch.routing import scenario as format
from dispatch.routing.scenario import parse_scenario, read_scenarios
from tests.rules.scenarios import degraded, exact, image_supply, scenario, supply

SCHEMA = json.loads((Path(format.__file__).parent / "scenario.schema.json").read_text())


def good() -> dict[str, Any]:
    refusals = [{"supply": "b", "state": "cooldown", "next_probe_at": "2026-06-01T13:00:00Z"}]
    bindings = [*exact("a", "b"), *degraded("b")]
    return scenario(
        {"a": supply(), "b": supply()}, bindings, refusals=refusals, groups={"g": {"capacity": 3, "used": 0}}
    )


type Change = Callable[[dict[str, Any]], Any]

# What is wrong, and the path that must be named. The last group passes the schema: it compares two places.
WRONG: list[tuple[str, Change]] = [
    ("colour", lambda it: it.update(colour="red")),
    ("now", lambda it: it.pop("now")),
    ("now", lambda it: it.update(now=5)),
    ("model", lambda it: it.update(model=[])),
    ("model.modality", lambda it: it["model"].update(modality="audio")),
    ("model.profile", lambda it: it["model"].pop("profile")),
    ("model.degradation", lambda it: it["model"].update(degradation="maybe")),
    ("model.emergency_override", lambda it: it["model"].update(emergency_override=1)),
    ("model.baseline", lambda it: it["model"].update(baseline="-1.00")),
    ("policy.order", lambda it: it["policy"].update(order="weighted")),
    ("policy.order", lambda it: it["policy"].pop("order")),
    ("policy.currency", lambda it: it["policy"].update(currency="dollars")),
    ("policy.min_samples", lambda it: it["policy"].update(min_samples=-1)),
    ("policy.probe_every", lambda it: it["policy"].update(probe_every=2.5)),
    ("policy.max_cost", lambda it: it["policy"].update(max_cost="1,00")),
    ("policy.shadow_order", lambda it: it["policy"].update(shadow_order="cost_first")),
    ("request.mode", lambda it: it["request"].update(mode="text_to_image")),
    ("request.size", lambda it: it["request"].update(size="1024x1024")),
    ("request.images", lambda it: it["request"].update(images=-1)),
    ("request.audio", lambda it: it["request"].update(audio="yes")),
    ("request.duration_s", lambda it: it["request"].update(duration_s="5")),
    ("request.billing_mode", lambda it: it["request"].update(billing_mode="per_token")),
    ("job.attempt", lambda it: it["job"].update(attempt=3)),
    ("job.selection_number", lambda it: it["job"].update(selection_number=-1)),
    ("job.tried[0]", lambda it: it["job"].update(tried=[7])),
    ("job.spent", lambda it: it["job"].update(spent="much")),
    ("fx.CNY", lambda it: it["fx"].update(CNY="cheap")),
    ("channels.east.state", lambda it: it["channels"]["east"].update(state="on")),
    ("channels.east.health", lambda it: it["channels"]["east"].pop("health")),
    ("channels.east.capacity", lambda it: it["channels"]["east"].update(capacity=-1)),
    ("channels.east.samples", lambda it: it["channels"]["east"].update(samples=1)),
    ("channels.east.recovery_successes", lambda it: it["channels"]["east"].update(health="recovering")),
    ("channels.east.recovery_successes", lambda it: it["channels"]["east"].update(recovery_successes=5)),
    ("groups.g.health", lambda it: it["groups"]["g"].update(health="healthy")),
    ("supplies.a.used", lambda it: it["supplies"]["a"].update(used=True)),
    ("supplies.a.real_person", lambda it: it["supplies"]["a"].update(real_person="perhaps")),
    ("supplies.a.capability", lambda it: it["supplies"]["a"].pop("capability")),
    ("supplies.a.capability.sizes", lambda it: it["supplies"]["a"]["capability"].update(sizes=[])),
    ("supplies.a.capability.fps", lambda it: it["supplies"]["a"]["capability"].update(fps=[24])),
    ("supplies.a.price.per_request", lambda it: it["supplies"]["a"]["price"].update(per_request="1")),
    ("supplies.a.price.step_s", lambda it: it["supplies"]["a"]["price"].update(step_s=1)),
    ("bindings[0].tier", lambda it: it["bindings"][0].update(tier="best")),
    ("bindings[0].priority", lambda it: it["bindings"][0].update(priority=1_000_001)),
    ("bindings[0].enabled", lambda it: it["bindings"][0].update(enabled="yes")),
    ("bindings[2].rule", lambda it: it["bindings"][2].pop("rule")),
    ("bindings[2].rule.drop_inputs[0]", lambda it: it["bindings"][2]["rule"].update(drop_inputs=["prompt"])),
    ("refusals[0].state", lambda it: it["refusals"][0].update(state="warm")),
    ("refusals[0].next_probe_at", lambda it: it["refusals"][0].pop("next_probe_at")),
]
ONLY_THE_READER_SEES: list[tuple[str, Change]] = [
    ("now", lambda it: it.update(now="yesterday")),
    ("now", lambda it: it.update(now="2026-06-01T12:00:00")),
    ("policy.success_band", lambda it: it["policy"].update(success_band=0)),
    ("policy.stable_cost_multiplier_limit", lambda it: it["policy"].update(stable_cost_multiplier_limit=0)),
    ("model.baseline", lambda it: it["model"].update(baseline="0.0000001")),
    ("fx.CNY", lambda it: it["fx"].update(CNY="0")),
    ("channels.east.group", lambda it: it["channels"]["east"].update(group="nobody")),
    ("supplies.a.channel", lambda it: it["supplies"]["a"].update(channel="north")),
    ("supplies.a.successes", lambda it: it["supplies"]["a"].update(successes=201)),
    ("bindings[0].supply", lambda it: it["bindings"][0].update(supply="nobody")),
    ("bindings[3]", lambda it: it["bindings"].append({"supply": "a", "tier": "exact"})),
    ("refusals[0].supply", lambda it: it["refusals"][0].update(supply="nobody")),
    ("refusals[1].supply", lambda it: it["refusals"].append({"supply": "b", "state": "frozen"})),
]


def test_the_good_scenario_is_good() -> None:
    jsonschema.validate(good(), SCHEMA)
    assert len(parse_scenario(good()).candidates) == 3


@pytest.mark.parametrize(("path", "change"), [*WRONG, *ONLY_THE_READER_SEES])
def test_what_is_wrong_is_named_by_its_path(path: str, change: Change) -> None:
    document = good()
    change(document)
    with pytest.raises(DocumentError) as refused:
        parse_scenario(document)
    assert refused.value.path == path


@pytest.mark.parametrize(("path", "change"), WRONG)
def test_the_published_schema_refuses_it_too(path: str, change: Change) -> None:
    document = good()
    change(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_the_published_schema_takes_every_worked_scenario() -> None:
    vectors = json.loads((Path(__file__).parent.parent / "vectors" / "routing.json").read_text())
    jsonschema.validate({"scenarios": [worked["scenario"] for worked in vectors]}, SCHEMA)


def test_nothing_of_an_image_scenario_may_speak_of_real_persons() -> None:
    def refused(change: Change) -> str:
        document = scenario({"a": image_supply()}, modality="image")
        change(document)
        with pytest.raises(DocumentError) as error:
            parse_scenario(document)
        return error.value.path

    assert refused(lambda it: it["request"].update(real_person=False)) == "request.real_person"
    assert refused(lambda it: it["supplies"]["a"].update(real_person="allowed")) == "supplies.a.real_person"
    image_definitions = {name: each for name, each in SCHEMA["$defs"].items() if name.startswith("image_")}
    assert "person" not in json.dumps(image_definitions)


def test_null_counts_as_absent() -> None:
    document = good()
    document["request"] |= {"real_person": None, "images": None, "max_cost": None}
    document["supplies"]["a"] |= {"real_person": None, "unknown": None, "price": None}
    document["bindings"][0] |= {"priority": None, "enabled": None, "rule": None}
    assert parse_scenario(document).candidates[0].enabled


def test_a_list_is_read_in_its_order_and_an_error_in_it_names_the_place() -> None:
    scenarios, listed = read_scenarios(json.dumps({"scenarios": [good(), good()]}))
    assert (len(scenarios), listed) == (2, True)
    broken = good() | {"now": None}
    with pytest.raises(DocumentError) as refused:
        read_scenarios(json.dumps({"scenarios": [good(), broken]}))
    assert refused.value.path == "scenarios[1].now"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "is not JSON"),
        ("[]", "must be an object"),
        ('{"now": NaN}', "NaN is not a number"),
        ('{"now": 1, "now": 2}', "stands twice"),
        ('{"now": %s}' % ("9" * 5_000), "is not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ('{"scenarios": {}}', "must be a list"),
        ('{"scenarios": [], "more": 1}', "no such key"),
    ],
)
def test_what_is_no_scenario_file_is_refused_in_words(source: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        read_scenarios(source)


def test_decimals_are_taken_as_they_are_written() -> None:
    document = json.dumps(good()).replace('"duration_s": 5', '"duration_s": 5.10')
    document = document.replace('"per_second": "0.30"', '"per_second": 0.1')
    (inputs,), _ = read_scenarios(document)
    assert str(getattr(inputs.shape, "duration_s", None)) == "51/10"
    assert inputs.candidates[0].supply.price is not None
    assert inputs.candidates[0].supply.price.unit == (1, 10)
