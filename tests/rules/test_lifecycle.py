"""The states of jobs and attempts, as sentences."""

from pathlib import Path

import pytest

from dispatch.lifecycle import (
    ATTEMPT_MOVES,
    FINAL_ATTEMPT_STATES,
    FINAL_JOB_STATES,
    JOB_MOVES,
    AttemptState,
    JobFacts,
    JobState,
    Slot,
    attempt_sources,
    job_state,
    slot_in,
)
from dispatch.states_page import states_page

A, J = AttemptState, JobState


def facts(state: JobState, *attempts: AttemptState, **wishes: bool) -> JobFacts:
    given = {"cancel_requested": False, "switch_allowed": False, "past_deadline": False, **wishes}
    return JobFacts(state=state, attempts=attempts, **given)


def test_every_attempt_state_can_be_reached_and_ends_somewhere() -> None:
    assert reachable_from(A.READY) == set(A)
    for start in A:
        assert reachable_from(start) & FINAL_ATTEMPT_STATES


def reachable_from(start: AttemptState) -> set[AttemptState]:
    seen, frontier = {start}, [start]
    while frontier:
        fresh = ATTEMPT_MOVES[frontier.pop()] - seen
        seen |= fresh
        frontier.extend(fresh)
    return seen


def test_nothing_ever_moves_back_to_submitting() -> None:
    assert attempt_sources(A.SUBMITTING) == {A.READY}
    assert not attempt_sources(A.READY)


def test_an_uncertain_submission_can_only_be_found_absent_found_present_or_given_up() -> None:
    assert ATTEMPT_MOVES[A.SUBMISSION_UNCERTAIN] == {A.ACCEPTED, A.FAILED, A.ABANDONED}


@pytest.mark.parametrize("state", sorted(FINAL_JOB_STATES))
def test_a_final_job_stays_whatever_its_attempts_do(state: JobState) -> None:
    assert job_state(facts(state, A.RUNNING, cancel_requested=True)) is state
    assert not JOB_MOVES[state]


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (A.READY, J.DISPATCHING),
        (A.SUBMITTING, J.RUNNING),
        (A.SUBMISSION_UNCERTAIN, J.RUNNING),
        (A.ACCEPTED, J.RUNNING),
        (A.PROVIDER_QUEUED, J.RUNNING),
        (A.RUNNING, J.RUNNING),
        (A.OUTCOME_UNCERTAIN, J.RUNNING),
        (A.GENERATED, J.FETCHING_OUTPUT),
        (A.FETCHING, J.FETCHING_OUTPUT),
        (A.SUCCEEDED, J.SUCCEEDED),
        (A.FAILED, J.FAILED),
        (A.ABANDONED, J.FAILED),
        (A.CANCELLED, J.CANCELLED),
    ],
)
def test_a_job_stands_where_its_last_attempt_puts_it(attempt: AttemptState, expected: JobState) -> None:
    assert job_state(facts(J.RUNNING, attempt)) is expected


def test_while_the_second_attempt_is_being_selected_the_job_is_dispatching() -> None:
    assert job_state(facts(J.RUNNING, A.FAILED, switch_allowed=True)) is J.DISPATCHING


def test_a_second_failure_is_final() -> None:
    assert job_state(facts(J.RUNNING, A.FAILED, A.FAILED)) is J.FAILED


def test_a_job_that_never_got_an_attempt_expires_at_its_deadline_and_is_cancelled_at_once_when_asked() -> (
    None
):
    assert job_state(facts(J.QUEUED)) is J.QUEUED
    assert job_state(facts(J.QUEUED, past_deadline=True)) is J.EXPIRED
    assert job_state(facts(J.QUEUED, cancel_requested=True)) is J.CANCELLED


def test_a_wish_to_cancel_shows_while_an_attempt_lives_and_the_providers_end_wins() -> None:
    assert job_state(facts(J.RUNNING, A.SUBMISSION_UNCERTAIN, cancel_requested=True)) is J.CANCEL_REQUESTED
    assert job_state(facts(J.CANCEL_REQUESTED, A.SUCCEEDED, cancel_requested=True)) is J.SUCCEEDED
    assert job_state(facts(J.CANCEL_REQUESTED, A.FAILED, cancel_requested=True)) is J.FAILED


def test_the_guard_ends_a_job_by_what_stopped_it() -> None:
    assert job_state(facts(J.DISPATCHING, A.CANCELLED, access_revoked=True)) is J.FAILED
    assert job_state(facts(J.DISPATCHING, A.CANCELLED, past_deadline=True)) is J.EXPIRED
    assert (
        job_state(facts(J.CANCEL_REQUESTED, A.CANCELLED, cancel_requested=True, past_deadline=True))
        is J.CANCELLED
    )


def test_a_slot_is_held_until_the_provider_is_proved_done() -> None:
    assert slot_in(A.SUBMITTING) is Slot.LIVE
    assert (
        slot_in(A.SUBMISSION_UNCERTAIN)
        is slot_in(A.OUTCOME_UNCERTAIN)
        is slot_in(A.ABANDONED)
        is Slot.UNKNOWN
    )
    assert slot_in(A.GENERATED) is slot_in(A.FETCHING) is slot_in(A.FAILED) is Slot.RELEASED


def test_the_states_page_says_what_the_tables_say() -> None:
    page = Path(__file__).parents[2] / "docs" / "states.md"
    assert page.read_text() == states_page(), "run ./run manage states_page"
