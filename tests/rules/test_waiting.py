"""What blocks a waiting job, as sentences."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from dispatch.fairness import Head, TenantHeads
from dispatch.routing.reasons import PERMANENT, REASONS
from dispatch.waiting import (
    FLOWING,
    STEP_OF,
    Code,
    Found,
    Heartbeat,
    Step,
    blocking_reason,
    clocks,
    code_alone,
    code_in_queue,
    code_of_reason,
    place_in_turn,
    verdict,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SOON = NOW + timedelta(seconds=1)


def in_queue(outcome: str, *reasons: str, held_back: str = "") -> Code:
    return code_in_queue(Found(outcome, reasons, NOW), held_back, NOW)


@pytest.mark.parametrize(
    ("reasons", "code"),
    [
        (["capacity_full", "capacity_full"], Code.CAPACITY_FULL),
        (["unknown_slots_full"], Code.UNKNOWN_SLOTS_FULL),
        (["not_before"], Code.PROVIDER_PAUSE),
        (["channel_circuit_open"], Code.UNHEALTHY),
        (["supply_circuit_open", "channel_health_disabled"], Code.UNHEALTHY),
        (["supply_health_disabled"], Code.UNHEALTHY),
        (["refusal_cooldown"], Code.CONTENT_COOLDOWN),
        (["refusal_frozen"], Code.CONTENT_FROZEN),
        (["draining", "capability_missing"], Code.OUT_OF_SERVICE),
        (["binding_disabled"], Code.OUT_OF_SERVICE),
        (["supply_disabled", "channel_disabled"], Code.OUT_OF_SERVICE),
        (["already_tried"], Code.NO_CAPABLE_SUPPLY),
        ([], Code.NO_CAPABLE_SUPPLY),
        (["over_max_cost"], Code.COST_LIMIT),
        (["no_price"], Code.COST_LIMIT),
    ],
)
def test_a_lot_waits_for_what_took_its_last_candidate_out(reasons: list[str], code: Code) -> None:
    assert in_queue("no_candidate", *reasons) is code


def test_of_several_reasons_the_latest_step_blocks_and_then_the_most_frequent() -> None:
    assert blocking_reason(["channel_disabled", "supply_circuit_open", "capacity_full"]) == "capacity_full"
    assert blocking_reason(["not_before", "capacity_full", "not_before"]) == "not_before"
    assert blocking_reason(["capability_missing", "draining"]) == "draining"


def test_what_no_waiting_can_end_blocks_only_where_there_is_nothing_else() -> None:
    assert blocking_reason(["over_max_cost", "capacity_full"]) == "capacity_full"
    assert blocking_reason(["over_max_cost", "capability_missing"]) == "over_max_cost"
    assert blocking_reason(["layer_not_reached", "real_person_restricted"]) is None


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_of_the_router_has_a_code_in_its_own_step(reason: str) -> None:
    step = REASONS[reason].step
    expected = Step.CAPABILITY if step <= 7 else Step.HEALTH_AND_CAPACITY if step <= 9 else Step.COST
    assert STEP_OF[code_of_reason(reason)] is expected


def test_every_code_has_a_step() -> None:
    assert set(STEP_OF) == set(Code)
    assert not PERMANENT - set(REASONS)


def test_a_lot_that_could_start_waits_for_its_turn_or_for_its_tenants_limit() -> None:
    assert in_queue("") is Code.IN_TURN
    assert in_queue("", held_back="tenant_limit") is Code.TENANT_LIMIT
    assert in_queue("waiting_capacity", "capacity_full", held_back="tenant_limit") is Code.CAPACITY_FULL


def test_a_lot_of_a_model_that_is_being_changed_says_so() -> None:
    assert in_queue("model_not_published") is Code.MODEL_NOT_PUBLISHED


def test_what_was_found_long_ago_says_nothing_of_a_job_that_came_now() -> None:
    old = Found("no_candidate", ("capacity_full",), NOW - timedelta(hours=1))
    assert code_in_queue(old, "", NOW) is Code.NOT_LOOKED_AT
    assert code_in_queue(Found("", looked_at=None), "", NOW) is Code.NOT_LOOKED_AT


def test_a_job_that_waits_by_itself_says_what_its_last_look_found() -> None:
    found = Found("no_candidate", ("refusal_cooldown",))
    assert code_alone(found, SOON, NOW) is Code.CONTENT_COOLDOWN
    assert code_alone(None, NOW, NOW) is Code.NOT_LOOKED_AT
    assert code_alone(found, NOW + timedelta(minutes=1), NOW) is Code.SET_ASIDE
    assert code_alone(Found("model_not_published"), SOON, NOW) is Code.MODEL_NOT_PUBLISHED


def silent(rung_s: float | None, answered_s: float | None) -> bool:
    def ago(seconds: float | None) -> datetime | None:
        return None if seconds is None else NOW - timedelta(seconds=seconds)

    return Heartbeat(ago(rung_s), ago(answered_s)).is_silent(NOW, sign_of_life_s=10, missing_after_s=10)


def test_a_dispatcher_is_silent_when_a_ring_is_unanswered_too_long_or_none_came_at_all() -> None:
    assert not silent(rung_s=1, answered_s=1)
    assert not silent(rung_s=9, answered_s=60), "it has ten seconds to answer"
    assert silent(rung_s=11, answered_s=12)
    assert not silent(rung_s=19, answered_s=19), "an idle one is asked every ten seconds"
    assert silent(rung_s=21, answered_s=21), "nobody rings"
    assert silent(rung_s=None, answered_s=None)
    assert silent(rung_s=1, answered_s=None)


def test_the_verdict_names_a_silent_dispatcher_first_and_then_what_holds_most_jobs_up() -> None:
    counts = {Code.CAPACITY_FULL: 32, Code.UNHEALTHY: 380, Code.IN_TURN: 500}
    assert verdict(counts, is_silent=True).code == "dispatcher_silent"
    found = verdict(counts, is_silent=False)
    assert (found.code, found.reason, found.jobs, found.waiting) == ("blocked", Code.UNHEALTHY, 380, 912)
    assert verdict({Code.IN_TURN: 3, Code.CAPACITY_FULL: 0}, is_silent=False).code == "flowing"
    assert verdict({}, is_silent=False).code == "nothing_waits"
    assert verdict({}, is_silent=True).code == "dispatcher_silent"
    assert {Code.CAPACITY_FULL, Code.SET_ASIDE} & FLOWING == set()


@pytest.mark.parametrize("seed", range(20))
def test_a_place_is_the_number_of_turns_that_the_fair_queue_takes_to_come_to_the_job(seed: int) -> None:
    dice = Random(seed)
    users = dice.choices(["", "anna", "bo", "chen", "dora"], k=30)
    last = dice.choice(["", "anna", "bonnie", "chen", "zoe"])
    heads = [Head(number, 1, user, dice.randrange(9), 1) for number, user in enumerate(users)]
    waiting = Counter(users)
    expected = {}
    queue = TenantHeads(last)
    queue.put(heads)
    while (head := queue.next()) is not None:
        queue.take(head, served=True)
        expected[head.job] = len(expected) + 1
    for head in heads:
        own = [each for each in heads if each.end_user == head.end_user]
        before = sum((each.queue_at, each.job) < (head.queue_at, head.job) for each in own)
        assert place_in_turn(head.end_user, before, waiting, last) == expected[head.job]


def test_queue_time_and_execution_time_are_two_clocks() -> None:
    began, ended = NOW + timedelta(seconds=7), NOW + timedelta(seconds=60)
    assert clocks(NOW, None, None, NOW + timedelta(seconds=5)).queued_s == 5
    assert clocks(NOW, None, None, SOON).executing_s is None
    whole = clocks(NOW, began, ended, NOW + timedelta(days=1))
    assert (whole.queued_s, whole.executing_s) == (7, 53)
