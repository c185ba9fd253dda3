import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dispatch.routing.explain import FLAGS as FLAG_SENTENCES
from dispatch.routing.explain import Explanation, explain
from dispatch.routing.ordering import ORDERS
from dispatch.routing.reasons import FLAGS, KEYS, PERMANENT, REASONS
from dispatch.routing.rendering import rendered
from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.snapshot import snapshot
from tests.rules.scenarios import degraded, exact, fallback, fixed, image_supply, scenario, supply


def explained(document: dict[str, Any]) -> Explanation:
    inputs = parse_scenario(document)
    return explain(snapshot(inputs, route(inputs)))


def mixed() -> dict[str, Any]:
    """One taken out by each of the first three steps, and two that could be taken."""
    supplies = {
        "unable": supply(capability=dict(supply()["capability"]) | {"resolutions": ["4k"]}),
        "open": supply(health="circuit_open"),
        "dear": supply(price=fixed("9.00")),
        "first": supply(),
        "second": supply(used=1),
    }
    return scenario(supplies, policy={"order": "stable_first"})


def test_each_step_tells_what_it_removed_and_what_remained() -> None:
    it = explained(mixed())
    removed = [[(removal.candidate, removal.reason) for removal in step.removed] for step in it.steps]
    assert removed == [
        [("unable", "capability_missing")],
        [("open", "supply_circuit_open")],
        [("dear", "over_stable_limit")],
        [],
    ]
    assert [sorted(step.remained) for step in it.steps] == [
        ["dear", "first", "open", "second"],
        ["dear", "first", "second"],
        ["first", "second"],
        ["first"],
    ]
    assert (it.selected, it.ranked, it.excluded, it.candidates) == (1, 1, 3, 5)


def test_the_text_says_all_of_it_in_order() -> None:
    text = rendered(explained(mixed()))
    order = [
        "A supply was chosen. first, tier exact",
        "1. Hard capability: 1 removed, 4 remain",
        "resolution 720p (can 4k)",
        "2. Health and capacity: 1 removed, 3 remain",
        "3. Stability and cost policy: 1 removed, 2 remain",
        "Baseline 1.50 USD.",
        "9.00 over 2.25",
        "4. At most one switch of supply: 0 removed, 1 remain",
        "2. second",
        "behind by free slots",
        "1 selected + 1 ranked + 3 excluded = 5 candidates",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_a_video_shows_the_real_person_policy_inside_step_1_and_an_image_never_mentions_it() -> None:
    video = rendered(explained(scenario({"a": supply(real_person="denied")}, request={"real_person": True})))
    image = rendered(explained(scenario({"a": image_supply(), "b": image_supply(used=9)}, modality="image")))
    assert "Real persons are shown" in video.split("2. Health")[0]
    assert "person" not in image.lower()


def test_a_degraded_choice_says_what_is_lost() -> None:
    supplies = {"full": supply(state="disabled"), "lesser": supply()}
    text = rendered(
        explained(scenario(supplies, [*exact("full"), *degraded("lesser")], request={"videos": 2}))
    )
    assert "Degraded: 933 → 900, drops reference_videos, reference_audios" in text
    assert "Alerts: exact_unavailable, degradation_active" in text


def test_a_job_that_waits_says_for_which_layer() -> None:
    it = explained(scenario({"a": supply(used=5), "b": supply()}, [*exact("a"), *fallback("b")]))
    assert (it.outcome, it.tier, it.chosen, it.places) == ("waiting_capacity", "exact", None, ())
    assert "The job waits for a free slot. Layer exact" in rendered(it)


def test_the_second_attempt_is_said_to_be_the_last() -> None:
    job = {"attempt": 2, "tried": ["b"], "spent": "1.50"}
    step = explained(scenario({"a": supply(), "b": supply()}, job=job)).steps[3]
    assert [str(note) for note in step.notes] == ["Second and last attempt, after b."]


def test_every_code_key_and_flag_has_its_words() -> None:
    assert all(reason.sentence.endswith(".") for reason in REASONS.values())
    assert {key for order in ORDERS.values() for key in order.keys} | {"probe"} == set(KEYS)
    assert set(FLAG_SENTENCES) == set(FLAGS)
    assert set(REASONS) >= PERMANENT


# The command


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("explain", *arguments)
    return capsys.readouterr().out


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(mixed()))
    return path


def test_the_command_prints_the_explanation_and_with_json_the_decision(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(capsys, str(file)) == rendered(explained(mixed()))
    assert json.loads(ran(capsys, str(file), "--json")) == route(parse_scenario(mixed())).as_json()


def test_the_command_answers_a_list_with_a_list_and_reads_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (0, 1, 2):
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"scenarios": [mixed()] * count})))
        assert len(json.loads(ran(capsys, "-", "--json"))) == count


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        (json.dumps(mixed() | {"colour": 1}), "colour: no such key"),
        (None, "can't be read"),
    ],
)
def test_a_wrong_file_ends_the_command_with_2_and_says_where(
    tmp_path: Path, content: str | None, words: str
) -> None:
    path = tmp_path / "scenario.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CommandError, match=words) as refused:
        call_command("explain", str(path))
    assert refused.value.returncode == 2
