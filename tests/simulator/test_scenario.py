"""Which rule a call meets, and how a task lives; without a server."""

import random
from typing import Any

import pytest

from catalog.simulator.scenario import (
    Call,
    Do,
    Life,
    Rule,
    Script,
    ScriptError,
    Timing,
    decide,
    life_of,
    read_script,
)

SUBMIT = Call("submit", "key-1", "model-a", "fy-1")


def dice() -> random.Random:
    return random.Random(7)


def decided(script: Script, *calls: Call) -> list[str]:
    answers, throw = [], dice()
    for call in calls:
        do, script = decide(script, call, throw)
        answers.append(do.answer)
    return answers


def test_a_call_that_no_rule_fits_goes_as_usual() -> None:
    script = Script((Rule(Do(answer="hang"), call="status"), Rule(Do(answer="hang"), account="key-2")))
    assert decided(script, SUBMIT) == ["whole"]


@pytest.mark.parametrize(
    "condition", [{}, {"call": "submit"}, {"account": "key-1"}, {"model": "model-a"}, {"reference": "fy-1"}]
)
def test_a_rule_fits_by_what_it_names(condition: dict[str, str]) -> None:
    assert decided(Script((Rule(Do(answer="hang"), **condition),)), SUBMIT) == ["hang"]


def test_a_rule_is_used_as_often_as_it_says() -> None:
    script = Script((Rule(Do(answer="hang"), times=2), Rule(Do(answer="empty"), times=1)))
    assert decided(script, *[SUBMIT] * 4) == ["hang", "hang", "empty", "whole"]


def test_a_chance_is_decided_by_the_seed() -> None:
    script = Script((Rule(Do(answer="hang"), chance=0.3),))
    first, second = (decided(script, *[SUBMIT] * 100) for _ in range(2))
    assert first == second
    assert 15 < first.count("hang") < 45


def test_what_is_added_later_holds_first() -> None:
    before = Script((Rule(Do(answer="hang")),))
    assert decided(before.with_more(Script((Rule(Do(answer="empty"), times=1),))), SUBMIT, SUBMIT) == [
        "empty",
        "hang",
    ]


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "script: an object"),
        ({"rule": []}, "script.rule: no such key"),
        ({"rules": {}}, "rules: a list"),
        ({"rules": [{"do": {"answr": "hang"}}]}, r"rules\[0\].do.answr: no such key"),
        ({"rules": [{"do": {"answer": "hangs"}}]}, r"rules\[0\].do.answer: 'hangs' is none of"),
        ({"rules": [{"do": {}, "when": {"call": "poll"}}]}, r"rules\[0\].when.call: 'poll'"),
        ({"rules": [{"do": {}, "when": {"key": "x"}}]}, r"rules\[0\].when.key: no such key"),
        ({"rules": [{"do": {"output": "gone"}}]}, r"rules\[0\].do.output"),
        ({"rules": [{"do": {"callback": "thrice"}}]}, r"rules\[0\].do.callback"),
        ({"accounts": {"key-1": {"state": "poor"}}}, "accounts.key-1.state: 'poor'"),
    ],
)
def test_a_script_that_is_misspelt_is_refused_with_its_place(document: Any, complaint: str) -> None:
    with pytest.raises(ScriptError, match=complaint):
        read_script(document)


def test_a_script_is_read() -> None:
    document = {
        "rules": [
            {
                "when": {"call": "submit"},
                "times": 1,
                "do": {"fail": "X", "sequence": [[0, "queued"], [2, "odd"]]},
            }
        ],
        "accounts": {"key-1": {"state": "overdue", "concurrency": 3}},
    }
    script = read_script(document)
    assert script.rules == (Rule(Do(fail="X", sequence=((0, "queued"), (2, "odd"))), call="submit", times=1),)
    assert script.accounts["key-1"].concurrency == 3


def life(do: Do | None = None, slot_free_at: float = 0) -> Life:
    return life_of(do or Do(), Timing(1, 3, 0), 100.0, dice(), slot_free_at)


def words(of: Life, *times: float) -> list[str]:
    return [of.word(at) for at in times]


def test_a_task_waits_runs_and_ends() -> None:
    assert words(life(), 100, 100.9, 101, 103.9, 104, 1000) == [
        "queued", "queued", "running", "running", "succeeded", "succeeded",
    ]  # fmt: skip


def test_a_task_waits_for_its_accounts_slot() -> None:
    assert words(life(slot_free_at=110), 105, 110, 113) == ["queued", "running", "succeeded"]


def test_a_task_fails_or_never_ends_or_takes_its_own_time() -> None:
    assert life(Do(fail="X")).word(104) == "failed"
    assert life(Do(run_s=-1)).word(10**9) == "running"
    assert words(life(Do(queue_s=0, run_s=0)), 100) == ["succeeded"]


def test_a_task_says_the_words_of_its_sequence() -> None:
    told = life(Do(sequence=((0, "running"), (2, "queued"), (4, "FAILED"))))
    assert words(told, 100, 102, 104) == ["running", "queued", "FAILED"]
    assert told.changes() == [(100, "running"), (102, "queued"), (104, "FAILED")]


def test_jitter_stays_inside_its_bounds_and_follows_the_seed() -> None:
    throw = dice()
    lives = [life_of(Do(), Timing(10, 100, 0.2), 0, throw, 0) for _ in range(200)]
    assert all(8 <= each.start_at <= 12 and 80 <= each.end_at - each.start_at <= 120 for each in lives)
    assert len({each.start_at for each in lives}) > 100
