"""The health machine on worked cases: evidence in, the state after each piece out."""

import json
from pathlib import Path
from typing import Any

import pytest

from health.replay import CaseError, parse_case, replay

CASES = json.loads((Path(__file__).parent.parent / "vectors" / "health.json").read_text())


@pytest.mark.parametrize("worked", CASES, ids=lambda worked: worked["case"]["subject"])
def test_a_worked_case_comes_out_exactly(worked: dict[str, Any]) -> None:
    assert list(replay(parse_case(worked["case"]))) == worked["states"]


GOOD = {"subject": "supply", "capacity": 4, "evidence": [{"at": "2026-06-01T12:00:00Z", "kind": "success"}]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"subject": "group"}, "subject: 'group' is none of channel, supply"),
        ({"capacity": 0}, "capacity: 0"),
        ({"capacity": True}, "capacity: True"),
        ({"evidence": {}}, "evidence: expected a list"),
        ({"evidence": [1]}, "evidence[0]: expected an object"),
        ({"evidence": [{"kind": "success"}]}, "evidence[0].at: None"),
        ({"evidence": [{"at": "2026-06-01T12:00:00", "kind": "tick"}]}, "has no time zone"),
        ({"evidence": [{"at": "2026-06-01T12:00:00Z", "kind": "won"}]}, "evidence[0].kind: 'won'"),
        ({"evidence": [{"at": "2026-06-01T12:00:00Z", "kind": "tick", "epoch": "1"}]}, "epoch: '1'"),
        ({"parameters": {"open_afer": 3}}, "parameters.open_afer: no such parameter"),
        ({"parameters": {"open_after": 0}}, "parameters.open_after: 0"),
        ({"parameters": {"rate_limit": 1.5}}, "parameters.rate_limit: 1.5"),
        ({"parameters": {"cooldowns_s": []}}, "parameters.cooldowns_s: []"),
        ({"parameters": [1]}, "parameters: expected an object"),
    ],
)
def test_a_case_that_is_none_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(CaseError) as refusal:
        parse_case(GOOD | change)
    assert words in str(refusal.value)


def test_a_time_with_another_zone_is_read_as_the_same_moment() -> None:
    evidence = [
        {"at": f"2026-06-01T20:00:0{n}+08:00", "kind": "failure", "scope": "supply", "code": "network"}
        for n in range(5)
    ]
    states = list(replay(parse_case(GOOD | {"evidence": evidence})))
    assert states[-1]["cooldown_until"] == "2026-06-01T12:00:34Z"
