"""Asks providers how far their jobs are, many at once, and records what is new.

Attempts that are due are claimed in one transaction, polled by a bounded set of threads that never touch
the database, and recorded one by one. A poll that fails, fails nothing: it is only repeated later."""

import logging
import random
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.tasks import async_task

from catalog.providers.registry import adapter_for
from catalog.providers.types import JobStatus, PollFailure, PollResult, ProviderError
from catalog.vault import VaultError
from dispatch import backoff, capacity
from dispatch.lifecycle import AT_PROVIDER_STATES, AttemptState
from dispatch.models import Attempt, ProviderEvent, ProviderJob
from dispatch.moves import Move
from dispatch.repository import claim_attempt, keep_event
from dispatch.services import raise_alerts
from dispatch.services.advance import advance
from dispatch.services.submit import record_generated
from dispatch.transport import ChannelAccess, access_to, transport_over

logger = logging.getLogger(__name__)
A = AttemptState
NOT_FOUND_IS_LOST_AFTER = 3  # 404s in a row

_STATE_OF_STATUS = {
    "provider_queued": A.PROVIDER_QUEUED,
    "throttled": A.PROVIDER_QUEUED,
    "running": A.RUNNING,
}
_FORWARD = {A.ACCEPTED: 0, A.PROVIDER_QUEUED: 1, A.RUNNING: 2}


def poll_due(clock: Callable[[], datetime]) -> int:
    """Polls the attempts that are due, one batch; how many were."""
    claimed = _claim_due(clock())
    if not claimed:
        return 0
    threads = min(settings.POLL_THREADS, len(claimed))
    with ThreadPoolExecutor(threads) as pool:
        # Channels are read and credentials opened here: the threads have no database connection.
        polls = {
            pool.submit(_ask, _access(attempt), attempt.provider_job.provider_job_id): attempt
            for attempt in claimed
        }
        for poll in as_completed(polls):
            _record(polls[poll], poll, clock)
    return len(claimed)


def _access(attempt: Attempt) -> ChannelAccess | PollFailure:
    try:
        return access_to(attempt.channel)
    except VaultError as error:
        return PollFailure(False, None, f"the credential can't be opened: {error}")


def _record(attempt: Attempt, poll: Future[PollResult], clock: Callable[[], datetime]) -> None:
    """One answer that can't be recorded keeps no other from being: it is asked for again at the next look."""
    try:
        record_poll(attempt, poll.result(), clock())
    except Exception:
        logger.exception("A poll could not be recorded", extra={"attempt": attempt.public_id})


def _claim_due(now: datetime) -> list[Attempt]:
    claimed_until = now + timedelta(seconds=settings.POLL_DEADLINE_S + 10)
    with transaction.atomic():
        due = (
            Attempt.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("channel", "supply", "provider_job", "job", "policy")
            .filter(state__in=AT_PROVIDER_STATES, next_look_at__lte=now)
            .order_by("next_look_at", "id")[: settings.POLL_BATCH_ATTEMPTS]
        )
        return [attempt for attempt in due if claim_attempt(attempt, claimed_until)]


def _ask(access: ChannelAccess | PollFailure, provider_job_id: str) -> PollResult:
    if isinstance(access, PollFailure):
        return access
    with transport_over(access) as transport:
        return adapter_for(access.provider).poll(transport, provider_job_id)


def record_poll(attempt: Attempt, result: PollResult, now: datetime) -> None:
    """The one door for what providers say of a running job, whether they were asked or called us."""
    with transaction.atomic():
        if isinstance(result, PollFailure):
            _record_failed_poll(attempt, result, now)
        else:
            _record_status(attempt, result, now)


def _record_failed_poll(attempt: Attempt, failure: PollFailure, now: datetime) -> None:
    provider_job = attempt.provider_job
    provider_job.polls += 1
    provider_job.polled_at = now
    provider_job.not_found_in_a_row = provider_job.not_found_in_a_row + 1 if failure.not_found else 0
    provider_job.save(update_fields=["polls", "polled_at", "not_found_in_a_row"])
    _keep(attempt, "not_found" if failure.not_found else "failed", {"detail": failure.detail}, now)
    lost = provider_job.not_found_in_a_row >= NOT_FOUND_IS_LOST_AFTER
    if _is_past_deadline(attempt, now) or lost:
        _give_up_hope(attempt, "three 404s in a row" if lost else "past its execution deadline", now)
        return
    wait_s = backoff.poll_failed_s(provider_job.not_found_in_a_row, failure.retry_after_s)
    _look_again(attempt, now, wait_s)


def _record_status(attempt: Attempt, status: JobStatus, now: datetime) -> None:
    provider_job = attempt.provider_job
    is_news = (provider_job.raw_status, provider_job.status) != (status.raw_status, status.status)
    _store_provider_job(provider_job, status, now)
    if is_news:
        _keep(attempt, status.status, dict(status.raw), now)
    match status.status:
        case "succeeded":
            provider_job.completed_at = now
            provider_job.save(update_fields=["completed_at"])
            record_generated(attempt, now)
        case "failed" | "cancelled" | "expired":
            _record_end(attempt, status, now)
        case "unknown":
            raise_alerts.unknown_provider_status(attempt, status.raw_status, now)
            _continue(attempt, now, is_news)
        case _:
            _move_forward(attempt, _STATE_OF_STATUS[status.status], now)
            _ask_to_cancel_again(attempt)
            _continue(attempt, now, is_news)


def _store_provider_job(provider_job: ProviderJob, status: JobStatus, now: datetime) -> None:
    provider_job.raw_status, provider_job.status = status.raw_status, status.status
    provider_job.progress = status.progress
    provider_job.polls += 1
    provider_job.polled_at = now
    provider_job.not_found_in_a_row = 0
    if status.outputs:
        provider_job.outputs = [locator.as_json() for locator in status.outputs]
        provider_job.outputs_expire_at = status.outputs[0].expires_at
    if status.usage:
        provider_job.usage = dict(status.usage)
    if status.error is not None:
        provider_job.raw_failure = dict(status.raw)
    provider_job.save()


def _record_end(attempt: Attempt, status: JobStatus, now: datetime) -> None:
    """A cancellation that was asked for is one, also after we lost sight of it; any other end without a
    result is a failure."""
    attempt.provider_job.completed_at = now
    attempt.provider_job.save(update_fields=["completed_at"])
    wished = attempt.state in (A.CANCEL_REQUESTED, A.OUTCOME_UNCERTAIN) and attempt.job.cancel_requested_at
    asked_for = wished and status.status == "cancelled"
    to = A.CANCELLED if asked_for else A.FAILED
    error = None if asked_for else status.error or _end_without_words(status)
    advance(Move(attempt.pk, attempt.state_version, to, {"next_look_at": None}, error), now)


def _end_without_words(status: JobStatus) -> ProviderError:
    return ProviderError(
        "supply", "supply", False, "internal_permanent", f"the provider ended it as {status.raw_status}"
    )


def _move_forward(attempt: Attempt, to: AttemptState, now: datetime) -> None:
    """Providers' late or repeated words never move an attempt backwards."""
    here = _FORWARD.get(AttemptState(attempt.state))
    if here is None or _FORWARD[to] <= here:
        return
    moved = advance(Move(attempt.pk, attempt.state_version, to), now)
    if moved is not None:
        attempt.state, attempt.state_version = moved.state, moved.state_version


def _ask_to_cancel_again(attempt: Attempt) -> None:
    """The provider still works on what it was never successfully asked to cancel."""
    asked = attempt.events.filter(kind=ProviderEvent.Kind.CANCEL).exclude(outcome="failed")
    if attempt.state == A.CANCEL_REQUESTED and not asked.exists():
        async_task("dispatch.tasks.cancel_at_provider", attempt.pk, cluster="traffic")


def _continue(attempt: Attempt, now: datetime, is_news: bool) -> None:
    if _is_past_deadline(attempt, now):
        _give_up_hope(attempt, "past its execution deadline", now)
        return
    polls = 0 if is_news else attempt.provider_job.polls
    _look_again(attempt, now, backoff.poll_interval_s(attempt.state, polls))


def _look_again(attempt: Attempt, now: datetime, wait_s: float) -> None:
    at = now + timedelta(seconds=backoff.jittered(wait_s, random.random()))  # noqa: S311 - spreads load
    if claim_attempt(attempt, at):
        capacity.hold_until_look(attempt, at, now)


def _is_past_deadline(attempt: Attempt, now: datetime) -> bool:
    deadline = attempt.execution_deadline_at
    return attempt.state != A.OUTCOME_UNCERTAIN and deadline is not None and now >= deadline


def _give_up_hope(attempt: Attempt, why: str, now: datetime) -> None:
    """The provider has it, and its end is not proved: the slot stays taken, look-ups go on."""
    if attempt.state == A.OUTCOME_UNCERTAIN:
        _look_again(
            attempt, now, backoff.recovery_s(attempt.provider_job.polls, settings.RECOVERY_FIRST_WAIT_S)
        )
        return
    changes: dict[str, Any] = {
        "uncertain_deadline_at": now + timedelta(seconds=attempt.policy.parsed().uncertain_deadline_s),
        "next_look_at": now + timedelta(seconds=backoff.recovery_s(0, settings.RECOVERY_FIRST_WAIT_S)),
    }
    moved = advance(Move(attempt.pk, attempt.state_version, A.OUTCOME_UNCERTAIN, changes), now)
    if moved is not None:
        raise_alerts.stuck_attempt(moved, why, now)


def _keep(attempt: Attempt, outcome: str, raw: dict[str, Any], now: datetime) -> None:
    keep_event(attempt, ProviderEvent.Kind.POLL, outcome, raw, now)
