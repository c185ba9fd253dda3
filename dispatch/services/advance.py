"""The one function that moves an attempt, with all that a move entails, in one transaction.

Slot, job state, health evidence, both ledgers and the next bell follow from the new state; so a worker
killed anywhere leaves either all of it or none."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django_q.tasks import async_task

from catalog.providers.types import ProviderError
from dispatch import capacity
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
from dispatch.repository import attempt_of, lock_job_of, move_attempt, move_job
from dispatch.retry import Failure, may_switch
from dispatch.services import settle
from dispatch.words import customer_error


def advance(move: Move, now: datetime) -> Attempt | None:
    """The moved attempt; None when somebody else moved it first: look again, decide again."""
    with transaction.atomic(savepoint=False):
        return advance_locked(attempt_of(lock_job_of(move.attempt_id), move.attempt_id), move, now)


def advance_locked(attempt: Attempt, move: Move, now: datetime) -> Attempt | None:
    """As `advance`, of an attempt that the caller read when it had locked `attempt.job`."""
    job, held = attempt.job, slot_in(AttemptState(attempt.state))
    if attempt.state_version != move.version:
        return None
    if not move_attempt(attempt, move.to, now, {**move.changes, **_error_columns(move.error)}):
        return None
    slot, freed = slot_in(move.to), False
    if slot is not held:
        freed = capacity.change_slot(attempt, slot, now, outcome=_lease_outcome(move.to))
    _follow_with_job(job, attempt, move, now)
    settle.record_end(job, attempt, move, now)
    if freed or (job.state == JobState.DISPATCHING and attempt.state == AttemptState.FAILED):
        wake_dispatcher()
    return attempt


def wake_dispatcher() -> None:
    """Rings the scan in the caller's transaction, if any job waits for it."""
    if is_anything_waiting():
        async_task("dispatch.tasks.scan_now", cluster="control")


def refresh_job(job: Job, now: datetime, **changes: Any) -> None:
    """Derives the state of a locked job anew from its attempts and stores it."""
    for name, value in changes.items():
        setattr(job, name, value)
    last = job.attempts.order_by("-number").first()
    _store_job_state(job, last, now, access_revoked=False, changes=changes)


def end_job(job: Job, error: tuple[str, str], now: datetime) -> None:
    """Fails a locked job that waits for an attempt and will get none, for the reason in `error`."""
    line = job.line_id
    move_job(job, JobState.FAILED, now, {"error_code": error[0], "error_message": error[1]})
    settle.settle_job(job, job.attempts.order_by("-number").first(), now)
    _leave(line)


def _leave(line: int | None) -> None:
    """After the books, which lock the customer: the queue's rows come behind it."""
    if line is not None:
        leave(line)


def _follow_with_job(job: Job, attempt: Attempt, move: Move, now: datetime) -> None:
    changes: dict[str, Any] = {}
    if move.to == AttemptState.SUCCEEDED:
        changes["adopted_attempt"] = attempt
    _store_job_state(job, attempt, now, access_revoked=move.access_revoked, changes=changes)


def _store_job_state(
    job: Job, last: Attempt | None, now: datetime, access_revoked: bool, changes: dict[str, Any]
) -> None:
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
        changes["next_action_at"] = job.dispatch_deadline_at if job.synchronous else now
    if target in FINAL_JOB_STATES and target != JobState.SUCCEEDED:
        code, message = customer_error(target, last, access_revoked=access_revoked)
        changes |= {"error_code": code, "error_message": message}
    was_final, line = job.state in FINAL_JOB_STATES, job.line_id
    move_job(job, target, now, changes)
    if job.state in FINAL_JOB_STATES and not was_final:
        settle.settle_job(job, last, now)
        _leave(line)


def _switch_allowed(job: Job, last: Attempt, now: datetime) -> bool:
    if last.state != AttemptState.FAILED:
        return False
    return may_switch(
        Failure(last.number, last.error_category, last.retryable),
        max_attempts=job.public_model.policy.parsed().max_attempts,
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
