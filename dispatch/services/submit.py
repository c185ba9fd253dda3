"""Sends attempts to their providers, each once.

Claim in a transaction that checks the final guard; then the network, outside any transaction; then record
what came back. Whatever breaks between claim and record leaves `submitting`, which only the reconciler
moves, to `submission_uncertain`: nothing here or anywhere posts a second time."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django_q.tasks import async_task

from billing.authentication import is_usable
from catalog.models import AdminState
from catalog.providers.errors import ASSET_UNAVAILABLE, AUTH, error_of
from catalog.providers.registry import adapter_for
from catalog.providers.types import (
    Accepted,
    AdapterCapabilities,
    CompilePlan,
    ProviderError,
    Rejected,
    SubmitOutcome,
    Unknown,
    plan_from_json,
)
from catalog.vault import VaultError
from dispatch import backoff, capacity
from dispatch.departures import Departure, Ended, depart
from dispatch.heartbeat import CLAIM, kept_leases
from dispatch.held_channels import held_until
from dispatch.inputs.delivery import InputLost, with_inputs
from dispatch.lifecycle import FINAL_ATTEMPT_STATES, AttemptState
from dispatch.models import Attempt, CapacityLease, Job, ProviderEvent, ProviderJob
from dispatch.moves import Move
from dispatch.repository import event_of, keep_event, keep_found_late, lock_job_of, locked_attempts
from dispatch.sending import Sender
from dispatch.services.advance import advance, advance_locked
from dispatch.services.cancel import request_cancel
from dispatch.services.raise_alerts import submission_uncertain, unmatched_charge
from dispatch.services.settle import book_loss
from dispatch.transport import transport_for_sending

logger = logging.getLogger(__name__)
A = AttemptState
Clock = Callable[[], datetime]


def submit(attempt_ids: Collection[int], clock: Clock, until: datetime | None = None) -> None:
    """Does nothing with attempts that are no longer `ready`: a task may be delivered twice.

    `until`: when a request whose own thread this is must have been answered."""
    claimed = _claim(attempt_ids, clock())
    if not claimed:
        return
    broken: list[Exception] = []
    with kept_leases(claimed, clock), Sender() as sender:
        departures = [Departure(attempt, _posting(attempt, clock(), until)) for attempt in claimed]
        for ended in depart(departures, lambda asking: _allow(asking, sender, clock())):
            sender.has_sent(each.attempt.pk for each in ended)
            broken += [each.outcome for each in ended if isinstance(each.outcome, Exception)]
            broken += _record_all(ended, clock())
    if broken:
        raise broken[0] if len(broken) == 1 else ExceptionGroup("submissions broke", broken)


def _claim(attempt_ids: Collection[int], now: datetime) -> list[Attempt]:
    """`ready → submitting` for those that the guard still lets go; the others move as it asks. What holds no
    lease stays as it is."""
    with transaction.atomic():
        seen = locked_attempts(attempt_ids, to_send=True).values()
        ready = [attempt for attempt in seen if attempt.state == A.READY]
        leases = CapacityLease.objects.filter(attempt__in=ready, released_at=None)
        fences: dict[int, int] = dict(leases.values_list("attempt", "fence"))
        held = capacity.renew(fences, now, now + capacity.LEASE_TTL)
        closed = held_until(now)
        wishes = [(attempt, _guarded(attempt, closed, now)) for attempt in ready if attempt.pk in held]
        moved = advance_locked(wishes, now)
    return [attempt for attempt in moved if attempt is not None and attempt.state == A.SUBMITTING]


def _guarded(attempt: Attempt, closed: Collection[str], now: datetime) -> Move:
    """To `submitting`, or where the guard sends it."""
    stopped = _guard(attempt, closed, now)
    return stopped or Move(attempt.pk, attempt.state_version, A.SUBMITTING, _beginning(attempt, now))


def _beginning(attempt: Attempt, now: datetime) -> dict[str, Any]:
    """The execution deadline runs from here also for what is never known to be accepted: it may run."""
    execution = timedelta(seconds=attempt.policy.execution_s(attempt.supply.modality))
    return {"request_started_at": now, "execution_deadline_at": now + execution}


def _guard(attempt: Attempt, closed: Collection[str], now: datetime) -> Move | None:
    """The last look before money is spent: the customer's side cancels, the supply's side fails."""
    job, wish = attempt.job, (attempt.pk, attempt.state_version)
    if job.cancel_requested_at is not None:
        return Move(*wish, A.CANCELLED)
    if not is_usable(job.api_key, now):
        return Move(*wish, A.CANCELLED, access_revoked=True)
    if now >= job.dispatch_deadline_at:
        return Move(*wish, A.CANCELLED)
    return stopped_by_supply(attempt, closed)


def stopped_by_supply(attempt: Attempt, closed: Collection[str]) -> Move | None:
    """The supply's side of the guard: what an operator disabled since is not sent to, nor a channel where
    the outcomes of submissions pile up unknown. `closed`: those channels, as `held_until` says."""
    if AdminState.DISABLED in (attempt.supply.state, attempt.channel.state):
        why = "disabled before it was sent"
    elif attempt.channel.slug in closed:
        why = "held back before it was sent: too many submissions of the channel end unknown"
    else:
        return None
    error = ProviderError("capacity", "supply", True, "not_created", why)
    return Move(attempt.pk, attempt.state_version, A.FAILED, error=error)


def _posting(
    attempt: Attempt, now: datetime, until: datetime | None
) -> Callable[[Callable[[], None]], SubmitOutcome]:
    """The call with everything that it takes from the database and the vault: it is made elsewhere."""
    adapter = adapter_for(attempt.channel.provider)
    within_s = None if until is None else (until - now).total_seconds()
    try:
        plan = _plan_to_send(attempt, adapter.capabilities, now)
        transport = transport_for_sending(attempt.channel, within_s)
    except InputLost as error:
        rejected = Rejected(error_of(ASSET_UNAVAILABLE, str(error)), "connecting")
        return lambda _: rejected
    except VaultError as error:
        rejected = Rejected(error_of(AUTH, f"the credential can't be opened: {error}"), "connecting")
        return lambda _: rejected
    return lambda ask: adapter.submit(transport, plan, attempt.client_request_key, before_send=ask)


def _plan_to_send(attempt: Attempt, adapter: AdapterCapabilities, now: datetime) -> CompilePlan:
    """Addresses of uploaded files are signed here, at each sending: none is old when it leaves."""
    return with_inputs(plan_from_json(attempt.compile_plan), attempt.job.customer_id, adapter, now)


_ALLOW = """
UPDATE dispatch_attempt AS attempt SET body_sent_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(versions)s::int[]) AS mine(id, version)
WHERE attempt.id = mine.id AND attempt.state_version = mine.version AND attempt.state = 'submitting'
  AND EXISTS (
    SELECT FROM dispatch_capacitylease AS lease
    WHERE lease.attempt_id = attempt.id AND lease.released_at IS NULL AND lease.expires_at > %(now)s)
RETURNING attempt.id"""


def _allow(attempts: Sequence[Attempt], sender: Sender, now: datetime) -> set[int]:
    """Called when the connections stand and no byte is sent; who may send. A process that was stopped for a
    minute finds here that a lease ran out or that the reconciler took the attempt, and sends nothing."""
    ids = [attempt.pk for attempt in attempts]
    sender.announce(ids)
    versions = [attempt.state_version for attempt in attempts]
    with connection.cursor() as cursor:
        cursor.execute(_ALLOW, {"ids": ids, "versions": versions, "now": now})
        return {attempt for (attempt,) in cursor.fetchall()}


# --- what came back ----------------------------------------------------------------------------------


def _record_all(ended: Sequence[Ended], now: datetime) -> list[Exception]:
    """What could not be recorded: those attempts stay `submitting`, and the reconciler finds them."""
    outcomes = [(each.attempt, each.outcome) for each in ended if not isinstance(each.outcome, Exception)]
    broken: list[Exception] = []
    for attempt, outcome in _record_usual(outcomes, now):
        try:
            record_submission(attempt, outcome, now)
        except Exception as error:  # noqa: BLE001 - raised when every other is recorded
            broken.append(error)
            connection.close_if_unusable_or_obsolete()
    return broken


type Outcome = tuple[Attempt, SubmitOutcome]


def _record_usual(outcomes: Sequence[Outcome], now: datetime) -> list[Outcome]:
    """Stores in one transaction what entails nothing further; the rest, each of which wants its own."""
    try:
        with transaction.atomic():
            present = locked_attempts({attempt.pk for attempt, _ in outcomes})
            usual = [each for each in outcomes if _is_usual(present[each[0].pk], each[1])]
            ProviderEvent.objects.bulk_create(_event(attempt, outcome, now) for attempt, outcome in usual)
            wishes = [_usual_wish(present[attempt.pk], outcome, now) for attempt, outcome in usual]
            ProviderJob.objects.bulk_create(
                _provider_job(attempt, outcome, now)
                for attempt, outcome in usual
                if isinstance(outcome, Accepted)
            )
            advance_locked(wishes, now)
    except Exception:  # noqa: BLE001 - one of them, as an id that is another's: each by itself finds out which
        connection.close_if_unusable_or_obsolete()
        return list(outcomes)
    for attempt, outcome in usual:
        _log(attempt, outcome)
    return [each for each in outcomes if each not in usual]


def _is_usual(present: Attempt, outcome: SubmitOutcome) -> bool:
    if present.state != A.SUBMITTING or present.job.cancel_requested_at is not None:
        return False
    return isinstance(outcome, Rejected) or (isinstance(outcome, Accepted) and not outcome.outputs)


def _usual_wish(present: Attempt, outcome: SubmitOutcome, now: datetime) -> tuple[Attempt, Move]:
    if isinstance(outcome, Accepted):
        return present, _acceptance(present, outcome, now)
    assert isinstance(outcome, Rejected)  # noqa: S101 - as `_is_usual` says
    return present, _rejection(present, outcome)


def record_submission(attempt: Attempt, outcome: SubmitOutcome, now: datetime) -> None:
    """Stores what the provider said, or that nobody knows what it said.

    An answer may take longer than the lease lasts. The reconciler takes its worker for lost then, and the
    answer, which no other worker can have, is believed all the same."""
    with transaction.atomic():
        keep_event(attempt, ProviderEvent.Kind.SUBMIT, _word(outcome), outcome.evidence(), now)
        attempt.job = lock_job_of(attempt.pk)
        sent = Attempt.objects.filter(pk=attempt.pk, state__in=(A.SUBMITTING, A.SUBMISSION_UNCERTAIN))
        attempt.state_version = sent.values_list("state_version", flat=True).first() or attempt.state_version
        match outcome:
            case Accepted():
                if not record_acceptance(attempt, outcome, now) and _has_ended(attempt):
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


def _has_ended(attempt: Attempt) -> bool:
    return Attempt.objects.filter(pk=attempt.pk, state__in=FINAL_ATTEMPT_STATES).exists()


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
    policy = attempt.policy.parsed()
    error = ProviderError("unknown", "attempt", False, "submission_unknown", detail)
    changes: dict[str, Any] = {
        "transport_stage": stage,
        "uncertain_deadline_at": now + timedelta(seconds=policy.uncertain_deadline_s),
        "next_look_at": now + timedelta(seconds=backoff.recovery_s(0, settings.RECOVERY_FIRST_WAIT_S)),
    }
    moved = advance(Move(attempt.pk, attempt.state_version, A.SUBMISSION_UNCERTAIN, changes, error), now)
    if moved is not None:
        submission_uncertain(moved, now)
