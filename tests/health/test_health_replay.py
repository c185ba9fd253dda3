"""`manage.py health_replay`: cases from a file, and what is recorded against what is stored."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from catalog.models import Supply
from health.circuit import Subject
from health.models import ChannelHealth, HealthEvent, SupplyHealth
from health.services.begin_recoveries import begin_recoveries
from health.services.switch import disable, enable
from tests.factories import NOW, SupplyFactory
from tests.health.evidence import NO_BALANCE, OPERATOR, OVERLOADED, fail, health_of, probing, win

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "health.json").read_text())


def replay(*arguments: str) -> str:
    out = StringIO()
    call_command("health_replay", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def written(content: object) -> str:
        path = tmp_path / "case.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return written


def test_one_case_gives_its_states_and_an_array_of_cases_an_array_of_those(file: Any) -> None:
    one, other = VECTORS[:2]
    assert json.loads(replay(file(one["case"]), "--json")) == one["states"]
    both = json.loads(replay(file([one["case"], other["case"]]), "--json"))
    assert both == [one["states"], other["states"]]
    assert json.loads(replay(file([one["case"]]), "--json")) == [one["states"]]


def test_without_json_each_piece_is_one_readable_line(file: Any) -> None:
    printed = replay(file(VECTORS[0]["case"])).splitlines()
    assert len(printed) == 1 + len(VECTORS[0]["states"])
    assert "circuit_open" in "".join(printed)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        ([{}], "case 0: capacity"),
        ({"subject": "x", "capacity": 1, "evidence": []}, "subject"),
    ],
)
def test_a_file_that_holds_no_case_is_refused_in_words(file: Any, content: object, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        replay(file(content))


def test_a_file_that_is_not_there_is_refused_in_words() -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        replay("/nowhere/case.json")


@pytest.fixture
def eventful(db: None) -> Supply:
    """A supply and a channel that went through everything."""
    supply = probing(SupplyFactory())
    win(supply, times=3)
    fail(supply)
    fail(supply, NO_BALANCE)
    begin_recoveries(NOW.replace(hour=13), lambda _channel: False)
    begin_recoveries(NOW.replace(hour=14), lambda _channel: True)
    win(supply, times=6, at=NOW.replace(hour=14))
    disable(Subject.CHANNEL, supply.channel_id, OPERATOR, "x", NOW)
    enable(Subject.CHANNEL, supply.channel_id, OPERATOR, "x", NOW)
    fail(supply, OVERLOADED, times=2)
    return supply


def test_what_is_recorded_replays_to_what_is_stored(eventful: Supply) -> None:
    states = json.loads(replay("--supply", eventful.public_id, "--json"))
    assert states[-1]["state"] == health_of(eventful).state == "degraded"
    states = json.loads(replay("--channel", eventful.channel.slug, "--json"))
    assert states[-1]["state"] == health_of(eventful.channel).state == "probing"
    assert "recovered" in replay("--supply", eventful.slug)


def test_a_supply_that_nothing_happened_to_replays_to_nothing(db: None) -> None:
    assert replay("--supply", SupplyFactory().slug) == ""


@pytest.mark.parametrize("changed", [{"state": "healthy"}, {"epoch": 9}, {"openings": 3}])
def test_a_stored_supply_that_somebody_changed_fails(eventful: Supply, changed: dict[str, Any]) -> None:
    SupplyHealth.objects.filter(pk=eventful.pk).update(**changed)
    with pytest.raises(CommandError, match=f"stored is {next(iter(changed))}"):
        replay("--supply", eventful.slug)


def test_a_stored_channel_without_its_events_fails(eventful: Supply) -> None:
    other = SupplyFactory()
    ChannelHealth.objects.create(channel=other.channel, state="disabled")
    with pytest.raises(CommandError, match="stored is state disabled"):
        replay("--channel", other.channel.slug)


def test_an_event_that_does_not_follow_from_its_evidence_fails(eventful: Supply) -> None:
    forged = HealthEvent.objects.filter(subject="supply").latest("pk")
    HealthEvent.objects.create(
        at=NOW,
        subject="supply",
        subject_id=eventful.pk,
        from_state="degraded",
        to_state="healthy",
        cause="restored",
        recovery_successes=0,
        epoch=forged.epoch,
        evidence={"at": "2026-11-30T12:00:00Z", "kind": "success"},
        before=forged.before | {"state": "degraded"},
        parameters=forged.parameters,
    )
    with pytest.raises(
        CommandError, match="recorded is state healthy, but its evidence gives state degraded"
    ):
        replay("--supply", eventful.slug)


def test_an_unknown_supply_is_told_by_name(db: None) -> None:
    with pytest.raises(CommandError, match="there is no supply nobody"):
        replay("--supply", "nobody")
