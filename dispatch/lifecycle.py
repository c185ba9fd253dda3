"""The states of jobs and attempts and every move between them; pure.

A job's state is derived from its attempts by `job_state`, never copied from the last one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class JobState(StrEnum):
    QUEUED = "queued"
    DISPATCHING = "dispatching"
    RUNNING = "running"
    FETCHING_OUTPUT = "fetching_output"
    CANCEL_REQUESTED = "cancel_requested"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class AttemptState(StrEnum):
    READY = "ready"
    SUBMITTING = "submitting"
    SUBMISSION_UNCERTAIN = "submission_uncertain"
    ACCEPTED = "accepted"
    PROVIDER_QUEUED = "provider_queued"
    RUNNING = "running"
    CANCEL_REQUESTED = "cancel_requested"
    OUTCOME_UNCERTAIN = "outcome_uncertain"
    GENERATED = "generated"
    FETCHING = "fetching"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


_J, _A = JobState, AttemptState
_AT_PROVIDER = (_A.GENERATED, _A.FAILED, _A.CANCEL_REQUESTED, _A.OUTCOME_UNCERTAIN)

ATTEMPT_MOVES: Mapping[AttemptState, frozenset[AttemptState]] = {
    state: frozenset(targets)
    for state, targets in {
        _A.READY: (_A.SUBMITTING, _A.CANCELLED, _A.FAILED),
        _A.SUBMITTING: (_A.ACCEPTED, _A.FAILED, _A.SUBMISSION_UNCERTAIN),
        _A.SUBMISSION_UNCERTAIN: (_A.ACCEPTED, _A.FAILED, _A.ABANDONED),
        _A.ACCEPTED: (_A.PROVIDER_QUEUED, _A.RUNNING, *_AT_PROVIDER),
        _A.PROVIDER_QUEUED: (_A.RUNNING, *_AT_PROVIDER),
        _A.RUNNING: _AT_PROVIDER,
        _A.CANCEL_REQUESTED: (_A.CANCELLED, _A.GENERATED, _A.FAILED, _A.OUTCOME_UNCERTAIN),
        _A.OUTCOME_UNCERTAIN: (_A.GENERATED, _A.FAILED, _A.CANCELLED, _A.ABANDONED),
        _A.GENERATED: (_A.FETCHING,),
        _A.FETCHING: (_A.SUCCEEDED, _A.FAILED),
        _A.SUCCEEDED: (),
        _A.FAILED: (),
        _A.CANCELLED: (),
        _A.ABANDONED: (),
    }.items()
}

_JOB_ENDS = (_J.SUCCEEDED, _J.FAILED, _J.CANCELLED, _J.EXPIRED)
JOB_MOVES: Mapping[JobState, frozenset[JobState]] = {
    state: frozenset(targets)
    for state, targets in {
        _J.QUEUED: (_J.DISPATCHING, _J.FAILED, _J.CANCELLED, _J.EXPIRED),
        _J.DISPATCHING: (_J.RUNNING, _J.CANCEL_REQUESTED, _J.FAILED, _J.CANCELLED, _J.EXPIRED),
        _J.RUNNING: (_J.DISPATCHING, _J.FETCHING_OUTPUT, _J.CANCEL_REQUESTED, _J.FAILED),
        _J.FETCHING_OUTPUT: (_J.CANCEL_REQUESTED, _J.SUCCEEDED, _J.FAILED),
        _J.CANCEL_REQUESTED: (_J.SUCCEEDED, _J.FAILED, _J.CANCELLED),
        **dict.fromkeys(_JOB_ENDS, ()),
    }.items()
}

FINAL_JOB_STATES = frozenset(_JOB_ENDS)
FINAL_ATTEMPT_STATES = frozenset(state for state, targets in ATTEMPT_MOVES.items() if not targets)
LIVE_ATTEMPT_STATES = frozenset(AttemptState) - FINAL_ATTEMPT_STATES

# Which attempts occupy a slot; an abandoned one does until its quarantine ends.
CONFIRMED_STATES = frozenset(
    {_A.READY, _A.SUBMITTING, _A.ACCEPTED, _A.PROVIDER_QUEUED, _A.RUNNING, _A.CANCEL_REQUESTED}
)
UNKNOWN_STATES = frozenset({_A.SUBMISSION_UNCERTAIN, _A.OUTCOME_UNCERTAIN})
AT_PROVIDER_STATES = frozenset(
    {_A.ACCEPTED, _A.PROVIDER_QUEUED, _A.RUNNING, _A.CANCEL_REQUESTED, _A.OUTCOME_UNCERTAIN}
)


def attempt_sources(target: AttemptState) -> frozenset[AttemptState]:
    """The states from which an attempt may move to `target`."""
    return frozenset(state for state, targets in ATTEMPT_MOVES.items() if target in targets)


def job_sources(target: JobState) -> frozenset[JobState]:
    """The states from which a job may move to `target`."""
    return frozenset(state for state, targets in JOB_MOVES.items() if target in targets)


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What a job's state is derived from: its present state, its attempts' states by number, and wishes."""

    state: JobState
    attempts: tuple[AttemptState, ...]
    cancel_requested: bool
    switch_allowed: bool  # the last attempt failed and retry.py lets a second begin
    past_deadline: bool
    access_revoked: bool = False


def job_state(facts: JobFacts) -> JobState:
    """The first rule that matches decides."""
    if facts.state in FINAL_JOB_STATES:
        return facts.state
    if not facts.attempts:
        return _without_attempt(facts)
    last = facts.attempts[-1]
    if facts.cancel_requested and last in LIVE_ATTEMPT_STATES:
        return _J.CANCEL_REQUESTED
    return _BY_LAST_ATTEMPT.get(last) or _after_the_end(facts, last)


_BY_LAST_ATTEMPT: Mapping[AttemptState, JobState] = {
    _A.SUCCEEDED: _J.SUCCEEDED,
    _A.GENERATED: _J.FETCHING_OUTPUT,
    _A.FETCHING: _J.FETCHING_OUTPUT,
    _A.READY: _J.DISPATCHING,
    **dict.fromkeys(
        (
            _A.SUBMITTING,
            _A.ACCEPTED,
            _A.PROVIDER_QUEUED,
            _A.RUNNING,
            _A.CANCEL_REQUESTED,
            _A.SUBMISSION_UNCERTAIN,
            _A.OUTCOME_UNCERTAIN,
        ),
        _J.RUNNING,
    ),
}


def _without_attempt(facts: JobFacts) -> JobState:
    if facts.cancel_requested:
        return _J.CANCELLED
    return _J.EXPIRED if facts.past_deadline else _J.QUEUED


def _after_the_end(facts: JobFacts, last: AttemptState) -> JobState:
    if last is _A.CANCELLED:
        return _stopped_by_guard(facts)
    if last is _A.FAILED and facts.switch_allowed:
        return _J.DISPATCHING
    return _J.FAILED


def _stopped_by_guard(facts: JobFacts) -> JobState:
    if facts.access_revoked:
        return _J.FAILED
    return _J.EXPIRED if facts.past_deadline and not facts.cancel_requested else _J.CANCELLED


class Slot(StrEnum):
    """What an attempt in a state does with its slot."""

    LIVE = "live"
    UNKNOWN = "unknown"
    RELEASED = "released"


def slot_in(state: AttemptState) -> Slot:
    """A slot is held while the provider may work, and while nobody can say whether it does."""
    if state in CONFIRMED_STATES:
        return Slot.LIVE
    if state in UNKNOWN_STATES or state is _A.ABANDONED:
        return Slot.UNKNOWN
    return Slot.RELEASED
