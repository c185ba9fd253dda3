"""Records what a provider says of a job it accepted, whether it was asked or called us."""

import random
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.tasks import async_task

from catalog.providers.types import JobStatus, PollFailure, PollResult, ProviderError
from dispatch import backoff, capacity
from dispatch.lifecycle import AT_PROVIDER_STATES, AttemptState
from dispatch.models import Attempt, ProviderEvent, ProviderJob
from dispatch.moves import Move
from dispatch.poll_rows import Claimed, polled
from dispatch.repository import claim_attempt, keep_event, lock_job_of
from dispatch.selection_facts import p95_seconds
from dispatch.services import raise_alerts
from dispatch.services.advance import advance_locked
from dispatch.services.submit import record_generated

A = AttemptState
NOT_FOUND_IS_LOST_AFTER = 3  # 404s in a row
ENDS = ("succeeded", "failed", "cancelled", "expired")

STATE_OF_STATUS = {
    "provider_queued": A.PROVIDER_QUEUED,
    "throttled": A.PROVIDER_QUEUED,
    "running": A.RUNNING,
}
_FORWARD = {A.ACCEPTED: 0, A.PROVIDER_QUEUED: 1, A.RUNNING: 2}


def record_poll(attempt: Attempt | Claimed, result: PollResult, now: datetime) -> None:
    """The one door for what providers say of a job, whether they were asked or called us. Decided on the
    attempt as it stands now: of one that has ended, what is new is kept and changes nothing."""
    with transaction.atomic():
        job = lock_job_of(attempt.pk)
        present = polled().select_for_update(of=("self",)).get(pk=attempt.pk)
        present.job = job
        if present.state not in AT_PROVIDER_STATES:
            _keep_late(present, result, now)
        elif isinstance(result, PollFailure):
            _record_failed_poll(present, result, now)
        else:
            _record_status(present, result, now)


def _keep_late(attempt: Attempt, result: PollResult, now: datetime) -> None:
    if isinstance(result, JobStatus) and is_news_of(attempt.provider_job, result):
        _keep_once(attempt, result, now)


def _record_failed_poll(attempt: Attempt, failure: PollFailure, now: datetime) -> None:
    job = attempt.provider_job
    job.polls, job.polled_at = job.polls + 1, now
    job.failed_polls_in_a_row += 1
    job.not_found_in_a_row = job.not_found_in_a_row + 1 if failure.not_found else 0
    job.save(update_fields=["polls", "polled_at", "failed_polls_in_a_row", "not_found_in_a_row"])
    _keep(attempt, "not_found" if failure.not_found else "failed", {"detail": failure.detail}, now)
    lost = job.not_found_in_a_row >= NOT_FOUND_IS_LOST_AFTER
    if attempt.state != A.OUTCOME_UNCERTAIN and (lost or is_past_deadline(attempt, now)):
        _give_up_hope(attempt, "three 404s in a row" if lost else "past its execution deadline", now)
        return
    wait_s = backoff.poll_failed_s(job.failed_polls_in_a_row, failure.retry_after_s)
    if attempt.state == A.OUTCOME_UNCERTAIN:
        wait_s = max(wait_s, backoff.poll_interval_s(attempt.state, job.failed_polls_in_a_row))
    _look_again(attempt, _spread(attempt, now, wait_s), now)


def _record_status(attempt: Attempt, status: JobStatus, now: datetime) -> None:
    job = attempt.provider_job
    if _is_backwards(attempt, status):
        _keep_once(attempt, status, now)
        _count(job, now, news=False)
        _continue(attempt, now)
        return
    is_news = is_news_of(job, status)
    if is_news:
        _keep(attempt, status.status, dict(status.raw), now)
    _store_provider_job(job, status, is_news, now)
    match status.status:
        case "succeeded":
            record_generated(attempt, now)
            _resolve_stuck(attempt, status, now)
        case "failed" | "cancelled" | "expired":
            _record_end(attempt, status, now)
            _resolve_stuck(attempt, status, now)
        case "unknown":
            raise_alerts.unknown_provider_status(attempt, status.raw_status, now)
            _continue(attempt, now)
        case _:
            _move_forward(attempt, STATE_OF_STATUS[status.status], now)
            _ask_to_cancel_again(attempt)
            _continue(attempt, now)


def is_news_of(job: ProviderJob | Claimed, status: JobStatus) -> bool:
    return (job.raw_status, job.status) != (status.raw_status, status.status)


def _is_backwards(attempt: Attempt, status: JobStatus) -> bool:
    """A late `queued` after `running`: providers' words never move an attempt back."""
    here, said = _FORWARD.get(AttemptState(attempt.state)), STATE_OF_STATUS.get(status.status)
    return here is not None and said is not None and _FORWARD[said] < here


def _store_provider_job(job: ProviderJob, status: JobStatus, is_news: bool, now: datetime) -> None:
    job.raw_status, job.status = status.raw_status, status.status
    if status.progress is not None:
        job.progress = status.progress
    if status.outputs:
        job.outputs = [locator.as_json() for locator in status.outputs]
        job.outputs_expire_at = status.outputs[0].expires_at
    if status.usage:
        job.usage = dict(status.usage)
    if status.error is not None:
        job.raw_failure = dict(status.raw)
    if status.status in ENDS:
        job.completed_at = now
    _count(job, now, news=is_news)


def _count(job: ProviderJob, now: datetime, news: bool) -> None:
    job.polls, job.polled_at = job.polls + 1, now
    job.quiet_polls = 0 if news else job.quiet_polls + 1
    job.failed_polls_in_a_row = job.not_found_in_a_row = 0
    job.save()


def _record_end(attempt: Attempt, status: JobStatus, now: datetime) -> None:
    """A cancellation that was asked for is one, also after we lost sight of it; any other end without a
    result is a failure."""
    wished = attempt.state in (A.CANCEL_REQUESTED, A.OUTCOME_UNCERTAIN) and attempt.job.cancel_requested_at
    asked_for = wished and status.status == "cancelled"
    to = A.CANCELLED if asked_for else A.FAILED
    error = None if asked_for else status.error or _end_without_words(status)
    advance_locked(attempt, Move(attempt.pk, attempt.state_version, to, {"next_look_at": None}, error), now)


def _resolve_stuck(attempt: Attempt, status: JobStatus, now: datetime) -> None:
    if attempt.state == A.OUTCOME_UNCERTAIN:
        raise_alerts.attempt_unstuck(attempt, f"the provider says {status.status}", now)


def _end_without_words(status: JobStatus) -> ProviderError:
    return ProviderError(
        "supply", "supply", False, "internal_permanent", f"the provider ended it as {status.raw_status}"
    )


def _move_forward(attempt: Attempt, to: AttemptState, now: datetime) -> None:
    """Providers' late or repeated words never move an attempt backwards."""
    here = _FORWARD.get(AttemptState(attempt.state))
    if here is None or _FORWARD[to] <= here:
        return
    advance_locked(attempt, Move(attempt.pk, attempt.state_version, to), now)


def _ask_to_cancel_again(attempt: Attempt) -> None:
    """The provider still works on what it was never successfully asked to cancel."""
    asked = attempt.events.filter(kind=ProviderEvent.Kind.CANCEL).exclude(outcome="failed")
    if attempt.state == A.CANCEL_REQUESTED and not asked.exists():
        async_task("dispatch.tasks.cancel_at_provider", attempt.pk, cluster="traffic")


def _continue(attempt: Attempt, now: datetime) -> None:
    if is_past_deadline(attempt, now):
        _give_up_hope(attempt, "past its execution deadline", now)
        return
    _look_again(attempt, next_look_at(attempt, attempt.provider_job.quiet_polls, now), now)


def next_look_at(attempt: Attempt | Claimed, quiet_polls: int, now: datetime) -> datetime:
    elapsed_s = (now - attempt.created_at).total_seconds()
    p95_s = p95_seconds(attempt.supply_id, now)
    return _spread(attempt, now, backoff.poll_interval_s(attempt.state, quiet_polls, elapsed_s, p95_s))


def _spread(attempt: Attempt | Claimed, now: datetime, wait_s: float) -> datetime:
    """With jitter; however long a provider wants to be left alone, its deadline is not slept through."""
    at = now + timedelta(seconds=backoff.jittered(wait_s, random.random()))  # noqa: S311 - spreads load
    deadline = attempt.execution_deadline_at
    return at if deadline is None or not now < deadline < at else deadline


def _look_again(attempt: Attempt, at: datetime, now: datetime) -> None:
    if claim_attempt(attempt, at):
        capacity.hold_until_look(attempt, at, now)


def is_past_deadline(attempt: Attempt | Claimed, now: datetime) -> bool:
    deadline = attempt.execution_deadline_at
    return attempt.state != A.OUTCOME_UNCERTAIN and deadline is not None and now >= deadline


def _give_up_hope(attempt: Attempt, why: str, now: datetime) -> None:
    """The provider has it, and its end is not proved: the slot stays taken, look-ups go on."""
    changes: dict[str, Any] = {
        "uncertain_deadline_at": now + timedelta(seconds=attempt.policy.parsed().uncertain_deadline_s),
        "next_look_at": now + timedelta(seconds=backoff.recovery_s(0, settings.RECOVERY_FIRST_WAIT_S)),
    }
    moved = advance_locked(
        attempt, Move(attempt.pk, attempt.state_version, A.OUTCOME_UNCERTAIN, changes), now
    )
    if moved is not None:
        capacity.hold_until_look(moved, changes["next_look_at"], now)
        raise_alerts.stuck_attempt(moved, why, now)


def _keep(attempt: Attempt, outcome: str, raw: dict[str, Any], now: datetime) -> None:
    keep_event(attempt, ProviderEvent.Kind.POLL, outcome, raw, now)


def _keep_once(attempt: Attempt, status: JobStatus, now: datetime) -> None:
    """A word that changes nothing, kept the first time it comes after another."""
    last = attempt.events.filter(kind=ProviderEvent.Kind.POLL).order_by("-id").first()
    if last is None or last.outcome != status.status:
        _keep(attempt, status.status, dict(status.raw), now)
