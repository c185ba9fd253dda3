"""Records what providers say of jobs they accepted, whether they were asked or called us.

What many answers entail is decided one by one in memory and written together: what was said, what the
providers know, the moves, and when to look again."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.tasks import async_task

from catalog.providers.types import JobStatus, PollFailure, PollResult, ProviderError
from catalog.retrying import retried_as_victim
from catalog.rows import insert_each
from dispatch import backoff, capacity
from dispatch.lifecycle import AT_PROVIDER_STATES, AttemptState
from dispatch.models import Attempt, ProviderEvent, ProviderJob
from dispatch.moves import Move
from dispatch.poll_rows import Claimed, store_told
from dispatch.repository import claim_attempts, event_of, locked_attempts
from dispatch.selection_facts import p95_seconds
from dispatch.services import raise_alerts
from dispatch.services.advance import advance_locked
from dispatch.services.record_submission import generated_move, ring_fetch

A = AttemptState
NOT_FOUND_IS_LOST_AFTER = 3  # 404s in a row
ENDS = ("succeeded", "failed", "cancelled", "expired")

STATE_OF_STATUS = {
    "provider_queued": A.PROVIDER_QUEUED,
    "throttled": A.PROVIDER_QUEUED,
    "running": A.RUNNING,
}
_FORWARD = {A.ACCEPTED: 0, A.PROVIDER_QUEUED: 1, A.RUNNING: 2}


@dataclass
class Told:
    """What one transaction over many answers writes; `alerts` come last, as in every transaction."""

    events: list[ProviderEvent] = field(default_factory=list)
    jobs: list[ProviderJob] = field(default_factory=list)
    moves: list[tuple[Attempt, Move]] = field(default_factory=list)
    looks: list[tuple[Attempt, datetime]] = field(default_factory=list)
    alerts: list[Callable[[], None]] = field(default_factory=list)

    def keep(self, attempt: Attempt, outcome: str, raw: Mapping[str, Any], now: datetime) -> None:
        self.events.append(event_of(attempt, ProviderEvent.Kind.POLL, outcome, dict(raw), now))

    def move(
        self, attempt: Attempt, to: AttemptState, changes: dict[str, Any], error: ProviderError | None = None
    ) -> None:
        self.moves.append((attempt, Move(attempt.pk, attempt.state_version, to, changes, error)))

    def write(self, now: datetime) -> None:
        insert_each(self.events)
        store_told(self.jobs)
        claim_attempts(self.looks)
        capacity.hold_until_looks(self.looks, now)
        for moved in advance_locked(self.moves, now):
            if moved is not None and moved.state == A.GENERATED:
                ring_fetch(moved)
        for alert in self.alerts:
            alert()


def record_poll(attempt: Attempt | Claimed, result: PollResult, now: datetime) -> None:
    record_polls({attempt.pk: result}, now)


@retried_as_victim
def record_polls(
    results: Mapping[int, PollResult], now: datetime, claimed: Mapping[int, int] | None = None
) -> None:
    """The one door for what providers say of jobs, whether they were asked or called us; by attempt. Decided
    on the attempts as they stand now: of one that has ended, what is new is kept and changes nothing.

    `claimed`: the versions at which they were claimed to be asked. Who moved or claimed one since has seen to
    its next look, so of an older answer only an end is news."""
    with transaction.atomic():
        told = Told()
        for attempt in locked_attempts(results).values():
            result = results[attempt.pk]
            if attempt.state not in AT_PROVIDER_STATES:
                _keep_late(attempt, result, told, now)
            elif claimed and _is_overtaken(attempt, claimed[attempt.pk], result):
                continue
            elif isinstance(result, PollFailure):
                _take_failure(attempt, result, told, now)
            else:
                _take_status(attempt, result, told, now)
        told.write(now)


def _is_overtaken(attempt: Attempt, claimed_at: int, result: PollResult) -> bool:
    ended = isinstance(result, JobStatus) and result.status in ENDS
    return attempt.state_version != claimed_at and not ended


def _keep_late(attempt: Attempt, result: PollResult, told: Told, now: datetime) -> None:
    if isinstance(result, JobStatus) and is_news_of(attempt.provider_job, result):
        _keep_once(attempt, result, told, now)


def _take_failure(attempt: Attempt, failure: PollFailure, told: Told, now: datetime) -> None:
    job = attempt.provider_job
    job.polls, job.polled_at = job.polls + 1, now
    job.failed_polls_in_a_row += 1
    job.not_found_in_a_row = job.not_found_in_a_row + 1 if failure.not_found else 0
    told.jobs.append(job)
    told.keep(attempt, "not_found" if failure.not_found else "failed", {"detail": failure.detail}, now)
    lost = job.not_found_in_a_row >= NOT_FOUND_IS_LOST_AFTER
    if attempt.state != A.OUTCOME_UNCERTAIN and (lost or is_past_deadline(attempt, now)):
        _give_up_hope(attempt, "three 404s in a row" if lost else "past its execution deadline", told, now)
        return
    wait_s = backoff.poll_failed_s(job.failed_polls_in_a_row, failure.retry_after_s)
    if attempt.state == A.OUTCOME_UNCERTAIN:
        wait_s = max(wait_s, backoff.poll_interval_s(attempt.state, job.failed_polls_in_a_row))
    told.looks.append((attempt, _spread(attempt, now, wait_s)))


def _take_status(attempt: Attempt, status: JobStatus, told: Told, now: datetime) -> None:
    job = attempt.provider_job
    told.jobs.append(job)
    if _is_backwards(attempt, status):
        _keep_once(attempt, status, told, now)
        _count(job, now, news=False)
        _continue(attempt, told, now)
        return
    is_news = is_news_of(job, status)
    if is_news:
        told.keep(attempt, status.status, status.raw, now)
    _take_over(job, status, now)
    _count(job, now, news=is_news)
    match status.status:
        case "succeeded":
            told.moves.append((attempt, generated_move(attempt, now)))
            _resolve_stuck(attempt, status, told, now)
        case "failed" | "cancelled" | "expired":
            _take_end(attempt, status, told)
            _resolve_stuck(attempt, status, told, now)
        case "unknown":
            told.alerts.append(partial(raise_alerts.unknown_provider_status, attempt, status.raw_status, now))
            _continue(attempt, told, now)
        case _:
            _ask_to_cancel_again(attempt)
            _continue(attempt, told, now, _ahead(attempt, STATE_OF_STATUS[status.status]))


def is_news_of(job: ProviderJob | Claimed, status: JobStatus) -> bool:
    return (job.raw_status, job.status) != (status.raw_status, status.status)


def _is_backwards(attempt: Attempt, status: JobStatus) -> bool:
    """A late `queued` after `running`: providers' words never move an attempt back."""
    here, said = _FORWARD.get(AttemptState(attempt.state)), STATE_OF_STATUS.get(status.status)
    return here is not None and said is not None and _FORWARD[said] < here


def _take_over(job: ProviderJob, status: JobStatus, now: datetime) -> None:
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


def _count(job: ProviderJob, now: datetime, news: bool) -> None:
    job.polls, job.polled_at = job.polls + 1, now
    job.quiet_polls = 0 if news else job.quiet_polls + 1
    job.failed_polls_in_a_row = job.not_found_in_a_row = 0


def _take_end(attempt: Attempt, status: JobStatus, told: Told) -> None:
    """A cancellation that was asked for is one, also after we lost sight of it; any other end without a
    result is a failure."""
    wished = attempt.state in (A.CANCEL_REQUESTED, A.OUTCOME_UNCERTAIN) and attempt.job.cancel_requested_at
    asked_for = wished and status.status == "cancelled"
    error = None if asked_for else status.error or _end_without_words(status)
    told.move(attempt, A.CANCELLED if asked_for else A.FAILED, {"next_look_at": None}, error)


def _resolve_stuck(attempt: Attempt, status: JobStatus, told: Told, now: datetime) -> None:
    if attempt.state == A.OUTCOME_UNCERTAIN:
        why = f"the provider says {status.status}"
        told.alerts.append(partial(raise_alerts.attempt_unstuck, attempt, why, now))


def _end_without_words(status: JobStatus) -> ProviderError:
    return ProviderError(
        "supply", "supply", False, "internal_permanent", f"the provider ended it as {status.raw_status}"
    )


def _ahead(attempt: Attempt, to: AttemptState) -> AttemptState | None:
    """Where it moves; providers' late or repeated words never move an attempt backwards."""
    here = _FORWARD.get(AttemptState(attempt.state))
    return None if here is None or _FORWARD[to] <= here else to


def _ask_to_cancel_again(attempt: Attempt) -> None:
    """The provider still works on what it was never successfully asked to cancel."""
    if attempt.state != A.CANCEL_REQUESTED:
        return
    asked = attempt.events.filter(kind=ProviderEvent.Kind.CANCEL).exclude(outcome="failed")
    if not asked.exists():
        async_task("dispatch.tasks.cancel_at_provider", attempt.pk, cluster="traffic")


def _continue(attempt: Attempt, told: Told, now: datetime, to: AttemptState | None = None) -> None:
    """The provider goes on: a look at it later, and a move on the way."""
    if is_past_deadline(attempt, now):
        _give_up_hope(attempt, "past its execution deadline", told, now)
        return
    at = next_look_at(attempt, attempt.provider_job.quiet_polls, now, to)
    if to is None:
        told.looks.append((attempt, at))
    else:
        told.move(attempt, to, {"next_look_at": at})


def next_look_at(
    attempt: Attempt | Claimed, quiet_polls: int, now: datetime, to: AttemptState | None = None
) -> datetime:
    """`to`: the state that it is about to be in."""
    elapsed_s = (now - attempt.created_at).total_seconds()
    p95_s = p95_seconds(attempt.supply_id, now)
    wait_s = backoff.poll_interval_s(to or attempt.state, quiet_polls, elapsed_s, p95_s)
    return _spread(attempt, now, wait_s)


def _spread(attempt: Attempt | Claimed, now: datetime, wait_s: float) -> datetime:
    """With jitter; however long a provider wants to be left alone, its deadline is not slept through."""
    at = now + timedelta(seconds=backoff.jittered(wait_s, random.random()))  # noqa: S311 - spreads load
    deadline = attempt.execution_deadline_at
    return at if deadline is None or not now < deadline < at else deadline


def is_past_deadline(attempt: Attempt | Claimed, now: datetime) -> bool:
    deadline = attempt.execution_deadline_at
    return attempt.state != A.OUTCOME_UNCERTAIN and deadline is not None and now >= deadline


def _give_up_hope(attempt: Attempt, why: str, told: Told, now: datetime) -> None:
    """The provider has it, and its end is not proved: the slot stays taken, look-ups go on."""
    changes = {
        "uncertain_deadline_at": now + timedelta(seconds=attempt.policy.parsed.uncertain_deadline_s),
        "next_look_at": now + timedelta(seconds=backoff.recovery_s(0, settings.RECOVERY_FIRST_WAIT_S)),
    }
    told.move(attempt, A.OUTCOME_UNCERTAIN, changes)
    told.alerts.append(partial(raise_alerts.stuck_attempt, attempt, why, now))


def _keep_once(attempt: Attempt, status: JobStatus, told: Told, now: datetime) -> None:
    """A word that changes nothing, kept the first time it comes after another."""
    last = attempt.events.filter(kind=ProviderEvent.Kind.POLL).order_by("-id").first()
    if last is None or last.outcome != status.status:
        told.keep(attempt, status.status, status.raw, now)
