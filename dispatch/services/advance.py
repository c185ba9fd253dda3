"""The one function that moves attempts, with all that a move entails, in one transaction.

Slots, job states, health evidence, both ledgers and the next bell follow from the new states; so a worker
killed anywhere leaves either all of it or none. Many moves cost hardly more statements than one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import prefetch_related_objects

from catalog.providers.types import ProviderError
from dispatch import capacity
from dispatch.capacity import SlotChange
from dispatch.lifecycle import (
    FINAL_JOB_STATES,
    AttemptState,
    JobFacts,
    JobState,
    Slot,
    job_state,
    slot_in,
)
from dispatch.models import Attempt, Job
from dispatch.moves import Move
from dispatch.queue import is_anything_waiting, leave
from dispatch.repository import JobMove, locked_attempts, move_attempts, move_jobs
from dispatch.retry import Failure, may_switch
from dispatch.ringing import wake
from dispatch.services import settle
from dispatch.words import customer_error


def advance(move: Move, now: datetime) -> Attempt | None:
    """The moved attempt; None when somebody else moved it first: look again, decide again."""
    return advance_all([move], now)[0]


def advance_all(moves: Sequence[Move], now: datetime) -> list[Attempt | None]:
    """As `advance`, of attempts of which each has one move; in the order of the moves."""
    with transaction.atomic(savepoint=False):
        attempts = locked_attempts({move.attempt_id for move in moves})
        return advance_locked([(attempts[move.attempt_id], move) for move in moves], now)


def advance_locked(wishes: Sequence[tuple[Attempt, Move]], now: datetime) -> list[Attempt | None]:
    """As `advance_all`, of attempts that the caller has from `locked_attempts`."""
    held = {attempt.pk: slot_in(AttemptState(attempt.state)) for attempt, _ in wishes}
    ends = settle.ends_of([wish for wish in wishes if is_current(*wish)], now)
    moved = move_attempts([(end.attempt, end.move.to, _columns(end, now)) for end in ends], now)
    ends = [end for end in ends if end.attempt.pk in moved]
    slots = [_slot_change(end) for end in ends if slot_in(end.move.to) is not held[end.attempt.pk]]
    freed = capacity.change_slots(slots, now)
    capacity.hold_until_looks([(end.attempt, at) for end in ends if (at := _look_at_held(end))], now)
    ended = _follow_with_jobs(ends, now)
    settle.record_ends(ends, now)
    _settle(ended, now)
    if freed or any(_wants_another(end.attempt) for end in ends):
        wake_dispatcher()
    return [attempt if attempt.pk in moved else None for attempt, _ in wishes]


def is_current(attempt: Attempt, move: Move) -> bool:
    """Whether the attempt is as it was when the move was decided."""
    return attempt.state_version == move.version


def _columns(end: settle.End, now: datetime) -> dict[str, Any]:
    return {**end.move.changes, **_error_columns(end.move.error), **end.columns(now)}


def _slot_change(end: settle.End) -> SlotChange:
    return SlotChange(end.attempt.pk, slot_in(end.move.to), _lease_outcome(end.move.to))


def _look_at_held(end: settle.End) -> datetime | None:
    """When an attempt that keeps its slot is looked at next, where the move says it."""
    at: datetime | None = end.move.changes.get("next_look_at")
    return None if slot_in(end.move.to) is Slot.RELEASED else at


def _wants_another(attempt: Attempt) -> bool:
    return attempt.job.state == JobState.DISPATCHING and attempt.state == AttemptState.FAILED


def wake_dispatcher() -> None:
    """Rings the scan in the caller's transaction, if any job waits for it."""
    if is_anything_waiting():
        wake("dispatch.tasks.scan_now", cluster="control")


def refresh_job(job: Job, now: datetime, **changes: Any) -> None:
    """Derives the state of a locked job anew from its attempts and stores it."""
    for name, value in changes.items():
        setattr(job, name, value)
    last = job.attempts.order_by("-number").first()
    _settle(_store([(last, _derived(job, last, now, changes=changes))], now), now)


def end_job(job: Job, error: tuple[str, str], now: datetime) -> None:
    """Fails a locked job that waits for an attempt and will get none, for the reason in `error`."""
    last = job.attempts.order_by("-number").first()
    columns = {"error_code": error[0], "error_message": error[1]}
    _settle(_store([(last, (job, JobState.FAILED, columns))], now), now)


type Ended = tuple[Job, Attempt | None, int | None]  # with its last attempt, and the line that it stood in


def _follow_with_jobs(ends: Sequence[settle.End], now: datetime) -> list[Ended]:
    """Moves the jobs of attempts that have moved; those that end."""
    failed = [end.attempt.job for end in ends if end.move.to is AttemptState.FAILED]
    prefetch_related_objects(failed, "public_model__policy")
    return _store([(end.attempt, _followed(end, now)) for end in ends], now)


def _followed(end: settle.End, now: datetime) -> JobMove:
    changes: dict[str, Any] = {}
    if end.move.to == AttemptState.SUCCEEDED:
        changes["adopted_attempt_id"] = end.attempt.pk
    if end.cost is not None and end.cost.micros:
        changes["provider_cost_micros"] = end.attempt.job.provider_cost_micros + end.cost.micros
    return _derived(end.attempt.job, end.attempt, now, end.move.access_revoked, changes)


def _derived(
    job: Job,
    last: Attempt | None,
    now: datetime,
    access_revoked: bool = False,
    changes: dict[str, Any] | None = None,
) -> JobMove:
    """To the state that follows from its last attempt."""
    columns = dict(changes or {})
    target = job_state(
        JobFacts(
            state=JobState(job.state),
            # Of two attempts the first has failed for good before the second begins: the last one decides.
            attempts=() if last is None else (AttemptState(last.state),),
            cancel_requested=job.cancel_requested_at is not None,
            switch_allowed=last is not None and _switch_allowed(job, last, now),
            past_deadline=now >= job.dispatch_deadline_at,
            access_revoked=access_revoked,
        )
    )
    if target == JobState.DISPATCHING and last is not None and last.state == AttemptState.FAILED:
        # A request that waits selects again itself; the scan only ends what such a request left behind.
        columns["next_action_at"] = job.dispatch_deadline_at if job.synchronous else now
    if target in FINAL_JOB_STATES and target not in (JobState.SUCCEEDED, job.state):
        code, message = customer_error(target, last, access_revoked=access_revoked)
        columns |= {"error_code": code, "error_message": message}
    return job, target, columns


def _store(moves: Sequence[tuple[Attempt | None, JobMove]], now: datetime) -> list[Ended]:
    """Those that end by it; what each is charged is written with its end."""
    ending: list[Ended] = []
    written: list[JobMove] = []
    for last, (job, target, columns) in moves:
        if target in FINAL_JOB_STATES and job.state not in FINAL_JOB_STATES:
            ending.append((job, last, job.line_id))
            columns = {**columns, "charged_micros": settle.charge_of(job, last, target)}
        written.append((job, target, columns))
    moved = move_jobs(written, now)
    return [ended for ended in ending if ended[0].pk in moved]


def _settle(ended: Sequence[Ended], now: datetime) -> None:
    """The books lock the customers: the queue's rows come behind them."""
    settle.settle_jobs([(job, last) for job, last, _ in ended], now)
    for line in sorted(line for _, _, line in ended if line is not None):
        leave(line)


def _switch_allowed(job: Job, last: Attempt, now: datetime) -> bool:
    if last.state != AttemptState.FAILED:
        return False
    return may_switch(
        Failure(last.number, last.error_category, last.retryable),
        max_attempts=job.public_model.policy.parsed.max_attempts,
        now=now,
        dispatch_deadline_at=job.dispatch_deadline_at,
        strict_model=job.request.get("routing_mode") == "strict_model",
        cancel_requested=job.cancel_requested_at is not None,
    ).allowed


def _error_columns(error: ProviderError | None) -> dict[str, Any]:
    if error is None:
        return {}
    return {
        "error_category": error.category,
        "error_scope": error.scope,
        "error_code": error.code,
        "error_message": error.message[:500],
        "retryable": error.retryable,
    }


def _lease_outcome(to: AttemptState) -> str:
    if slot_in(to) is not Slot.RELEASED:
        return ""
    return "completed" if to in (AttemptState.GENERATED, AttemptState.CANCELLED) else "failed"
