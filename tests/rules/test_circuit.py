"""What opens a circuit, how it comes back, and what counts for nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from health.circuit import (
    Cause,
    Change,
    Circuit,
    Evidence,
    Kind,
    State,
    Subject,
    advance,
    effective_capacity,
)
from health.parameters import Parameters

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
DEFAULTS = Parameters()


class Timeline:
    """A circuit, and a clock that each piece moves on by a second."""

    def __init__(self, subject: Subject, parameters: Parameters = DEFAULTS) -> None:
        self.circuit = Circuit(subject)
        self.now, self.parameters = NOON, parameters
        self.changes: list[Change] = []

    def give(self, kind: Kind, times: int = 1, *, after_s: float = 1, **piece: object) -> "Timeline":
        for _ in range(times):
            self.now += timedelta(seconds=after_s)
            evidence = replace(Evidence(self.now, kind), **piece)
            self.circuit, change = advance(self.circuit, evidence, self.parameters)
            self.changes += [change] if change else []
        return self

    def win(self, times: int = 1, **piece: object) -> "Timeline":
        return self.give(Kind.SUCCESS, times, **{"supply": "a"} | piece)

    def fail(self, times: int = 1, **piece: object) -> "Timeline":
        given = {"scope": self.circuit.subject.value, "code": "internal_permanent", "supply": "a"}
        return self.give(Kind.FAILURE, times, **given | piece)

    def until_probing(self) -> "Timeline":
        assert self.circuit.cooldown_until is not None
        self.now = self.circuit.cooldown_until - timedelta(seconds=1)
        return self.give(Kind.TICK)

    @property
    def state(self) -> State:
        return self.circuit.state

    @property
    def cooldown_s(self) -> float:
        assert self.circuit.cooldown_until is not None
        return (self.circuit.cooldown_until - self.now).total_seconds()


def supply(**parameters: object) -> Timeline:
    return Timeline(Subject.SUPPLY, replace(DEFAULTS, **parameters))


def channel(**parameters: object) -> Timeline:
    return Timeline(Subject.CHANNEL, replace(DEFAULTS, **parameters))


def test_a_supply_is_degraded_by_its_second_failure_in_a_row_and_opened_by_its_fifth() -> None:
    line = supply()
    states = [line.fail().state for _ in range(5)]
    assert states == ["healthy", "degraded", "degraded", "degraded", "circuit_open"]
    assert [change.cause for change in line.changes] == [Cause.REPEATED_FAILURES, Cause.REPEATED_FAILURES]


def test_failures_between_successes_are_not_in_a_row() -> None:
    line = supply(degrade_after=3)
    line.fail().win(5).fail().win().fail()
    assert line.state == State.HEALTHY
    assert line.circuit.failures == 1


def test_the_failure_rate_opens_a_supply_that_never_fails_twice_in_a_row() -> None:
    line = supply(rate_limit=0.4)
    for _ in range(9):
        line.win().fail()
    assert line.state == State.HEALTHY  # 18 samples are too few
    line.win().fail()
    assert (line.state, line.changes[-1].cause) == (State.CIRCUIT_OPEN, Cause.FAILURE_RATE)


def test_exactly_half_of_the_samples_failing_does_not_open() -> None:
    line = supply(degrade_after=100, open_after=100)
    line.win(10).fail(10)
    assert line.state == State.HEALTHY
    assert line.fail().state == State.CIRCUIT_OPEN  # 11 of 21


def test_the_failure_rate_is_not_tested_on_a_success() -> None:
    line = supply(degrade_after=100, open_after=100)
    line.fail(19)
    assert line.win().state == State.HEALTHY


@pytest.mark.parametrize(("apart_s", "state"), [(120, State.CIRCUIT_OPEN), (120.5, State.HEALTHY)])
def test_a_sample_of_exactly_two_minutes_ago_still_counts(apart_s: float, state: State) -> None:
    line = supply(degrade_after=100, open_after=100)
    line.fail(19, after_s=0).fail(after_s=apart_s)
    assert line.state == state


def test_a_failure_of_the_channel_is_none_of_the_supply() -> None:
    line = supply()
    line.fail(10, scope="channel", code="auth")
    assert line.circuit == Circuit(Subject.SUPPLY)


@pytest.mark.parametrize("code", ["auth", "permission", "balance"])
def test_a_refused_account_opens_the_channel_at_once(code: str) -> None:
    line = channel().fail(code=code)
    assert (line.state, line.changes[-1].cause) == (State.CIRCUIT_OPEN, Cause.ACCOUNT_REFUSED)


def test_a_channel_is_opened_by_two_connect_failures_in_a_row() -> None:
    line = channel()
    assert line.fail(code="network").state == State.DEGRADED
    assert line.win().fail(code="network").state == State.DEGRADED
    assert line.fail(code="network").state == State.CIRCUIT_OPEN
    assert line.changes[-1].cause == Cause.CONNECT_FAILURES


@pytest.mark.parametrize(("apart_s", "state"), [(60, State.CIRCUIT_OPEN), (60.5, State.HEALTHY)])
def test_one_code_from_two_supplies_within_a_minute_opens_the_channel(apart_s: float, state: State) -> None:
    line = channel()
    line.fail(scope="supply", code="overloaded", supply="a")
    line.fail(scope="supply", code="overloaded", supply="b", after_s=apart_s)
    assert line.state == state


def test_one_supply_alone_or_two_codes_say_nothing_about_the_channel() -> None:
    line = channel()
    line.fail(3, scope="supply", code="overloaded", supply="a")
    line.fail(scope="supply", code="internal_retryable", supply="b")
    assert line.state == State.HEALTHY


def test_codes_of_a_model_are_never_correlated() -> None:
    line = channel()
    for supply_id in "abc":
        line.fail(scope="supply", code="model_not_found", supply=supply_id)
    assert line.circuit == Circuit(Subject.CHANNEL)


def test_a_supply_failure_neither_interrupts_nor_advances_the_recovery_of_its_channel() -> None:
    line = channel().fail(code="auth").until_probing().win(3)
    before = line.circuit
    line.fail(scope="supply", code="internal_permanent")
    assert line.circuit == before


def test_correlated_failures_seen_while_probing_open_the_channel_once_it_is_healthy_again() -> None:
    line = channel().fail(code="auth").until_probing()
    line.fail(scope="supply", code="overloaded", supply="a").win(5)
    assert line.state == State.HEALTHY
    assert line.fail(scope="supply", code="overloaded", supply="b").state == State.CIRCUIT_OPEN


def test_content_and_request_errors_change_nothing_in_any_state() -> None:
    for line in (supply(), supply().fail(3), supply().fail(5), supply().fail(5).until_probing().win(3)):
        before = line.circuit
        line.give(Kind.NONE, 50, code="safety_input")
        assert line.circuit == before


def test_a_result_of_an_older_epoch_neither_advances_nor_reopens() -> None:
    line = supply().fail(5).until_probing().win(2)
    before = line.circuit
    line.win(epoch=0).fail(epoch=0)
    assert line.circuit == before


def test_results_that_arrive_while_the_circuit_is_open_change_nothing() -> None:
    line = supply().fail(5)
    before = line.circuit
    line.win(epoch=1).fail(epoch=1).win().fail()
    assert line.circuit == before


def test_a_circuit_waits_its_cooldown_from_the_failure_before_it_is_probed() -> None:
    line = supply().fail(5)
    assert line.cooldown_s == 30
    assert line.give(Kind.TICK, after_s=29).state == State.CIRCUIT_OPEN
    assert line.give(Kind.TICK, after_s=1).state == State.PROBING
    assert line.circuit.cooldown_until is None


def test_five_successes_lead_back_step_by_step() -> None:
    line = supply().fail(5).until_probing()
    steps = [(line.win().state, line.circuit.recovery_successes) for _ in range(5)]
    assert steps == [("probing", 1), ("recovering", 2), ("recovering", 3), ("recovering", 4), ("healthy", 0)]
    causes = [change.cause for change in line.changes[-5:]]
    assert causes == [Cause.RECOVERY_STEP] * 4 + [Cause.RECOVERED]


@pytest.mark.parametrize("successes", [0, 1, 2, 3, 4])
def test_any_failure_on_the_way_back_reopens_with_a_full_cooldown_and_a_new_epoch(successes: int) -> None:
    line = supply().fail(5).until_probing().win(successes).fail()
    assert (line.state, line.circuit.recovery_successes, line.circuit.epoch) == (State.CIRCUIT_OPEN, 0, 2)
    assert (line.cooldown_s, line.changes[-1].cause) == (60, Cause.RECOVERY_FAILED)


def test_cooldowns_grow_with_each_reopening_and_start_over_after_a_return_to_healthy() -> None:
    line = supply().fail(5)
    spans = [line.cooldown_s] + [line.until_probing().fail().cooldown_s for _ in range(5)]
    assert spans == [30, 60, 120, 300, 600, 600]
    assert line.until_probing().win(5).fail(5).cooldown_s == 30


def test_three_successes_restore_a_degraded_supply() -> None:
    line = supply().fail(2).win(2)
    assert line.state == State.DEGRADED
    assert line.win().state == State.HEALTHY
    assert line.changes[-1].cause == Cause.RESTORED


def test_a_failed_account_check_starts_the_same_cooldown_again_without_a_new_epoch() -> None:
    line = channel().fail(code="auth")
    line.give(Kind.CHECK_FAILED, after_s=29)
    assert line.cooldown_s == 1  # not due: no check was asked for
    line.give(Kind.CHECK_FAILED, after_s=1)
    assert (line.state, line.cooldown_s, line.circuit.epoch) == (State.CIRCUIT_OPEN, 30, 1)
    assert line.changes[-1].cause == Cause.ACCOUNT_CHECK_FAILED


def test_nothing_automatic_leaves_disabled() -> None:
    line = supply().fail(5).give(Kind.DISABLE)
    before = line.circuit
    assert (before.state, before.cooldown_until, before.epoch) == (State.DISABLED, None, 1)
    line.give(Kind.TICK, after_s=100_000).win(9).fail(9).give(Kind.CHECK_FAILED).give(Kind.DISABLE)
    assert line.circuit == before


def test_enabling_leads_to_probing_under_a_new_epoch_and_keeps_the_cooldown_ladder() -> None:
    line = supply().fail(5).until_probing().fail().give(Kind.DISABLE).give(Kind.ENABLE)
    assert (line.state, line.circuit.epoch) == (State.PROBING, 3)
    assert line.fail().cooldown_s == 120


def test_an_operator_may_choose_healthy_explicitly() -> None:
    line = supply().give(Kind.DISABLE).give(Kind.ENABLE_HEALTHY)
    assert (line.state, line.circuit.epoch) == (State.HEALTHY, 1)


def test_enabling_what_is_not_disabled_changes_nothing() -> None:
    line = supply().fail(5)
    before = line.circuit
    assert line.give(Kind.ENABLE).give(Kind.ENABLE_HEALTHY).circuit == before


@pytest.mark.parametrize(
    ("configured", "slots"), [(1, [1, 1, 1]), (2, [1, 1, 1]), (3, [1, 2, 2]), (4, [1, 2, 3]), (10, [3, 5, 8])]
)
def test_capacity_comes_back_in_quarters_rounded_up_with_one_slot_closed(
    configured: int, slots: list[int]
) -> None:
    assert [effective_capacity(State.RECOVERING, successes, configured) for successes in (2, 3, 4)] == slots


@pytest.mark.parametrize(
    ("state", "slots"),
    [("healthy", 10), ("degraded", 10), ("probing", 1), ("circuit_open", 0), ("disabled", 0)],
)
def test_capacity_outside_a_recovery_is_all_one_or_nothing(state: str, slots: int) -> None:
    assert effective_capacity(state, 0, 10) == slots
