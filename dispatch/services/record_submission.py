"""What came back from providers that attempts were sent to, or that nobody knows what came back.

Most answers entail nothing further and are recorded together; each other has a transaction of its own."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django_q.tasks import async_task

from catalog.providers.types import Accepted, ProviderError, Rejected, SubmitOutcome, Unknown
from catalog.retrying import retried_as_victim
from catalog.rows import insert_each
from catalog.sessions import drop_broken_session
from dispatch import backoff
from dispatch.departures import Ended
from dispatch.heartbeat import CLAIM
from dispatch.lifecycle import FINAL_ATTEMPT_STATES, AttemptState
from dispatch.models import Attempt, Job, ProviderEvent, ProviderJob
from dispatch.moves import Move
from dispatch.repository import event_of, keep_event, keep_found_late, locked_attempt, locked_attempts
from dispatch.services.advance import advance, advance_locked
from dispatch.services.cancel import request_cancel
from dispatch.services.raise_alerts import submission_uncertain, unmatched_charge
from dispatch.services.settle import book_loss

logger = logging.getLogger(__name__)
A = AttemptState


def record_submissions(ended: Sequence[Ended], now: datetime) -> list[Exception]:
    """What could not be recorded: those attempts stay `submitting`, and the reconciler finds them."""
    outcomes = [(each.attempt, each.outcome) for each in ended if not isinstance(each.outcome, Exception)]
    broken: list[Exception] = []
    for attempt, outcome in _record_usual(outcomes, now):
        try:
            record_submission(attempt, outcome, now)
        except Exception as error:  # noqa: BLE001 - raised when every other is recorded
            broken.append(error)
            drop_broken_session()
    return broken


type Outcome = tuple[Attempt, SubmitOutcome]


def _record_usual(outcomes: Sequence[Outcome], now: datetime) -> list[Outcome]:
    """Stores in one transaction what entails nothing further; the rest, each of which wants its own."""
    try:
        usual = _store_usual(outcomes, now)
    except Exception:  # noqa: BLE001 - one of them, as an id that is another's: each by itself finds out which
        drop_broken_session()
        return list(outcomes)
    for attempt, outcome in usual:
        _log(attempt, outcome)
    return [each for each in outcomes if each not in usual]


@retried_as_victim
def _store_usual(outcomes: Sequence[Outcome], now: datetime) -> list[Outcome]:
    with transaction.atomic():
        present = locked_attempts({attempt.pk for attempt, _ in outcomes})
        usual = [each for each in outcomes if _is_usual(present[each[0].pk], each[1])]
        insert_each([_event(attempt, outcome, now) for attempt, outcome in usual])
        wishes = [_usual_wish(present[attempt.pk], outcome, now) for attempt, outcome in usual]
        taken = [(attempt, outcome) for attempt, outcome in usual if isinstance(outcome, Accepted)]
        insert_each([_provider_job(attempt, outcome, now) for attempt, outcome in taken])
        advance_locked(wishes, now)
    return usual


def _is_usual(present: Attempt, outcome: SubmitOutcome) -> bool:
    if present.state != A.SUBMITTING or present.job.cancel_requested_at is not None:
        return False
    return isinstance(outcome, Rejected) or (isinstance(outcome, Accepted) and not outcome.outputs)


def _usual_wish(present: Attempt, outcome: SubmitOutcome, now: datetime) -> tuple[Attempt, Move]:
    if isinstance(outcome, Accepted):
        return present, _acceptance(present, outcome, now)
    assert isinstance(outcome, Rejected)  # noqa: S101 - as `_is_usual` says
    return present, _rejection(present, outcome)


@retried_as_victim
def record_submission(attempt: Attempt, outcome: SubmitOutcome, now: datetime) -> None:
    """Stores what the provider said, or that nobody knows what it said.

    An answer may take longer than the lease lasts. The reconciler takes its worker for lost then, and the
    answer, which no other worker can have, is believed all the same."""
    with transaction.atomic():
        keep_event(attempt, ProviderEvent.Kind.SUBMIT, _word(outcome), outcome.evidence(), now)
        present = locked_attempt(attempt.pk)
        attempt.job = present.job
        if present.state in (A.SUBMITTING, A.SUBMISSION_UNCERTAIN):
            attempt.state_version = present.state_version
        match outcome:
            case Accepted():
                if not record_acceptance(attempt, outcome, now) and present.state in FINAL_ATTEMPT_STATES:
                    book_loss(attempt, now)
                    unmatched_charge(attempt, outcome.provider_job_id, now)
                    keep_found_late(attempt, outcome.provider_job_id, None if outcome.outputs else now)
            case Rejected():
                advance(_rejection(attempt, outcome), now)
            case Unknown():
                record_uncertain(attempt, outcome.stage or "", outcome.detail, now)
    _log(attempt, outcome)


def _log(attempt: Attempt, outcome: SubmitOutcome) -> None:
    logger.info(
        "Submitted to the provider: %s",
        _word(outcome),
        extra={"job": attempt.job.public_id, "attempt": attempt.public_id, "channel": attempt.channel.slug},
    )


def _word(outcome: SubmitOutcome) -> str:
    return type(outcome).__name__.lower()


def _event(attempt: Attempt, outcome: SubmitOutcome, now: datetime) -> ProviderEvent:
    return event_of(attempt, ProviderEvent.Kind.SUBMIT, _word(outcome), outcome.evidence(), now)


def _acceptance(attempt: Attempt, accepted: Accepted, now: datetime) -> Move:
    changes = {
        "accepted_at": now,
        "trace_id": accepted.request_id or "",
        "uncertain_deadline_at": None,
        "next_look_at": now + timedelta(seconds=backoff.poll_interval_s(A.ACCEPTED, 0)),
    }
    return Move(attempt.pk, attempt.state_version, A.ACCEPTED, changes)


def _rejection(attempt: Attempt, rejected: Rejected) -> Move:
    changes = {"transport_stage": rejected.stage or "", "next_look_at": None}
    return Move(attempt.pk, attempt.state_version, A.FAILED, changes, rejected.error)


def record_acceptance(attempt: Attempt, accepted: Accepted, now: datetime) -> bool:
    """The provider has the job. False when the attempt had moved on, or the provider's id is another's."""
    try:
        with transaction.atomic():
            moved = advance(_acceptance(attempt, accepted, now), now)
            if moved is None:
                return False
            provider_job = _provider_job(attempt, accepted, now)
            provider_job.save(force_insert=True)
    except IntegrityError:
        record_uncertain(attempt, "body", "the provider answered with the id of another job", now)
        return False
    if accepted.outputs:
        provider_job.outputs = [locator.as_json() for locator in accepted.outputs]
        provider_job.outputs_expire_at = accepted.outputs[0].expires_at
        provider_job.completed_at = now
        provider_job.usage = dict(accepted.usage)
        provider_job.save(update_fields=["outputs", "outputs_expire_at", "completed_at", "usage"])
        record_generated(moved, now)
    elif Job.objects.filter(attempts=moved, cancel_requested_at__isnull=False).exists():
        request_cancel(moved, now)  # wished while nobody knew whether there was anything to cancel
    return True


def _provider_job(attempt: Attempt, accepted: Accepted, now: datetime) -> ProviderJob:
    return ProviderJob(
        attempt_id=attempt.pk,
        channel_id=attempt.channel_id,
        provider_job_id=accepted.provider_job_id,
        provider_request_id=accepted.request_id or "",
        raw_status=accepted.raw_status or "",
        usage=dict(accepted.usage),
        submitted_at=now,
    )


def record_generated(attempt: Attempt, now: datetime) -> None:
    """The provider is done: the slot is free, the output is fetched next."""
    moved = advance(generated_move(attempt, now), now)
    if moved is not None:
        ring_fetch(moved)


def generated_move(attempt: Attempt, now: datetime) -> Move:
    changes = {"generated_at": now, "next_look_at": now + CLAIM}
    return Move(attempt.pk, attempt.state_version, A.GENERATED, changes)


def ring_fetch(generated: Attempt) -> None:
    """A request that waits for its picture fetches it itself; if it died, the reconciler rings."""
    if not generated.job.synchronous:
        async_task("dispatch.tasks.fetch", generated.pk, cluster="traffic")


def record_uncertain(attempt: Attempt, stage: str, detail: str, now: datetime) -> None:
    """Nobody knows whether the provider works on it: the slot stays taken, look-ups begin."""
    policy = attempt.policy.parsed
    error = ProviderError("unknown", "attempt", False, "submission_unknown", detail)
    changes: dict[str, Any] = {
        "transport_stage": stage,
        "uncertain_deadline_at": now + timedelta(seconds=policy.uncertain_deadline_s),
        "next_look_at": now + timedelta(seconds=backoff.recovery_s(0, settings.RECOVERY_FIRST_WAIT_S)),
    }
    moved = advance(Move(attempt.pk, attempt.state_version, A.SUBMISSION_UNCERTAIN, changes, error), now)
    if moved is not None:
        submission_uncertain(moved, now)
