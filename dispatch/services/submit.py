"""Sends an attempt to its provider, once.

Claim in a transaction that checks the final guard; then the network, outside any transaction; then record
what came back. Whatever breaks between claim and record leaves `submitting`, which only the reconciler
moves, to `submission_uncertain`: nothing here or anywhere posts a second time."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
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
    SendForbidden,
    SubmitOutcome,
    Unknown,
    plan_from_json,
)
from catalog.vault import VaultError
from dispatch import backoff, capacity
from dispatch.heartbeat import CLAIM, kept_lease
from dispatch.held_channels import is_held
from dispatch.inputs.delivery import InputLost, with_inputs
from dispatch.lifecycle import FINAL_ATTEMPT_STATES, AttemptState
from dispatch.models import Attempt, CapacityLease, Job, ProviderEvent, ProviderJob
from dispatch.moves import Move
from dispatch.repository import keep_event, lock_job_of
from dispatch.sending import Sender
from dispatch.services.advance import advance
from dispatch.services.cancel import request_cancel
from dispatch.services.raise_alerts import submission_uncertain, unmatched_charge
from dispatch.services.settle import book_loss
from dispatch.transport import transport_for_sending

logger = logging.getLogger(__name__)
A = AttemptState
Clock = Callable[[], datetime]


def submit(attempt_id: int, clock: Clock, until: datetime | None = None) -> None:
    """Does nothing when the attempt is no longer `ready`: a task may be delivered twice.

    `until`: when a request whose own thread this is must have been answered."""
    claimed = _claim(attempt_id, clock())
    if claimed is None:
        return
    with kept_lease(claimed, clock):
        outcome = _send(claimed, clock, until)
    record_submission(claimed, outcome, clock())


def _claim(attempt_id: int, now: datetime) -> Attempt | None:
    """`ready → submitting`, if the guard still lets it; else the move that the guard asks for."""
    with transaction.atomic():
        attempt = (
            Attempt.objects.select_related(
                "job__customer", "job__api_key__customer", "supply", "channel", "policy"
            )
            .filter(pk=attempt_id, state=A.READY)
            .first()
        )
        if attempt is None:
            return None
        stopped = _guard(attempt, now)
        if stopped is not None:
            advance(stopped, now)
            return None
        fence = attempt.leases.filter(released_at=None).values_list("fence", flat=True).first()
        beginning = _beginning(attempt, now)
        claimed = advance(Move(attempt.pk, attempt.state_version, A.SUBMITTING, beginning), now)
        # After the move, which locks the job: a cancellation locks job and lease in that order too.
        if fence and claimed and capacity.renew(attempt.pk, fence, now, now + capacity.LEASE_TTL):
            claimed.job, claimed.channel, claimed.policy = attempt.job, attempt.channel, attempt.policy
            claimed.compile_plan = attempt.compile_plan
            return claimed
        transaction.set_rollback(True)
        return None


def _beginning(attempt: Attempt, now: datetime) -> dict[str, Any]:
    """The execution deadline runs from here also for what is never known to be accepted: it may run."""
    execution = timedelta(seconds=attempt.policy.execution_s(attempt.supply.modality))
    return {"request_started_at": now, "execution_deadline_at": now + execution}


def _guard(attempt: Attempt, now: datetime) -> Move | None:
    """The last look before money is spent: the customer's side cancels, the supply's side fails."""
    job, wish = attempt.job, (attempt.pk, attempt.state_version)
    if job.cancel_requested_at is not None:
        return Move(*wish, A.CANCELLED)
    if not is_usable(job.api_key, now):
        return Move(*wish, A.CANCELLED, access_revoked=True)
    if now >= job.dispatch_deadline_at:
        return Move(*wish, A.CANCELLED)
    return stopped_by_supply(attempt)


def stopped_by_supply(attempt: Attempt) -> Move | None:
    """The supply's side of the guard: what an operator disabled since is not sent to, nor a channel where
    the outcomes of submissions pile up unknown."""
    if AdminState.DISABLED in (attempt.supply.state, attempt.channel.state):
        why = "disabled before it was sent"
    elif is_held(attempt.channel.slug):
        why = "held back before it was sent: too many submissions of the channel end unknown"
    else:
        return None
    error = ProviderError("capacity", "supply", True, "not_created", why)
    return Move(attempt.pk, attempt.state_version, A.FAILED, error=error)


def _send(attempt: Attempt, clock: Clock, until: datetime | None = None) -> SubmitOutcome:
    channel = attempt.channel
    adapter = adapter_for(channel.provider)
    within_s = None if until is None else (until - clock()).total_seconds()
    try:
        plan = _plan_to_send(attempt, adapter.capabilities, clock())
        connection = transport_for_sending(channel, within_s)
    except InputLost as error:
        return Rejected(error_of(ASSET_UNAVAILABLE, str(error)), "connecting")
    except VaultError as error:
        return Rejected(error_of(AUTH, f"the credential can't be opened: {error}"), "connecting")
    with connection as transport, Sender(attempt.pk) as sender:
        return adapter.submit(
            transport,
            plan,
            attempt.client_request_key,
            before_send=lambda: _before_send(attempt, sender, clock()),
        )


def _plan_to_send(attempt: Attempt, adapter: AdapterCapabilities, now: datetime) -> CompilePlan:
    """Addresses of uploaded files are signed here, at each sending: none is old when it leaves."""
    return with_inputs(plan_from_json(attempt.compile_plan), attempt.job.customer_id, adapter, now)


def _before_send(attempt: Attempt, sender: Sender, now: datetime) -> None:
    """Called when the connection stands and no byte is sent. A process that was stopped for a minute finds
    here that its lease ran out or that the reconciler took the attempt, and sends nothing."""
    sender.announce()
    held = CapacityLease.objects.filter(attempt=OuterRef("pk"), released_at=None, expires_at__gt=now)
    mine = Attempt.objects.filter(pk=attempt.pk, state=A.SUBMITTING, state_version=attempt.state_version)
    if not mine.filter(Exists(held)).update(body_sent_at=now):
        raise SendForbidden(f"attempt {attempt.public_id} is no longer this worker's to send")


def record_submission(attempt: Attempt, outcome: SubmitOutcome, now: datetime) -> None:
    """Stores what the provider said, or that nobody knows what it said.

    An answer may take longer than the lease lasts. The reconciler takes its worker for lost then, and the
    answer, which no other worker can have, is believed all the same."""
    with transaction.atomic():
        _keep_event(attempt, outcome, now)
        job = lock_job_of(attempt.pk)
        sent = Attempt.objects.filter(pk=attempt.pk, state__in=(A.SUBMITTING, A.SUBMISSION_UNCERTAIN))
        attempt.state_version = sent.values_list("state_version", flat=True).first() or attempt.state_version
        match outcome:
            case Accepted():
                if not record_acceptance(attempt, outcome, now) and _has_ended(attempt):
                    book_loss(job, attempt, now)
                    unmatched_charge(attempt, outcome.provider_job_id, now)
            case Rejected(error=error, stage=stage):
                changes = {"transport_stage": stage or "", "next_look_at": None}
                advance(Move(attempt.pk, attempt.state_version, A.FAILED, changes, error), now)
            case Unknown():
                record_uncertain(attempt, outcome.stage or "", outcome.detail, now)
    logger.info(
        "Submitted to the provider: %s",
        type(outcome).__name__.lower(),
        extra={"job": attempt.job.public_id, "attempt": attempt.public_id, "channel": attempt.channel.slug},
    )


def _has_ended(attempt: Attempt) -> bool:
    return Attempt.objects.filter(pk=attempt.pk, state__in=FINAL_ATTEMPT_STATES).exists()


def record_acceptance(attempt: Attempt, accepted: Accepted, now: datetime) -> bool:
    """The provider has the job. False when the attempt had moved on, or the provider's id is another's."""
    first_poll = now + timedelta(seconds=backoff.poll_interval_s(A.ACCEPTED, 0))
    changes = {
        "accepted_at": now,
        "trace_id": accepted.request_id or "",
        "uncertain_deadline_at": None,
        "next_look_at": first_poll,
    }
    try:
        with transaction.atomic():
            moved = advance(Move(attempt.pk, attempt.state_version, A.ACCEPTED, changes), now)
            if moved is None:
                return False
            provider_job = _provider_job(attempt, accepted, now)
    except IntegrityError:
        record_uncertain(attempt, "body", "the provider answered with the id of another job", now)
        return False
    capacity.hold_until_look(attempt, first_poll, now)
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
    return ProviderJob.objects.create(
        attempt=attempt,
        channel=attempt.channel,
        provider_job_id=accepted.provider_job_id,
        provider_request_id=accepted.request_id or "",
        raw_status=accepted.raw_status or "",
        usage=dict(accepted.usage),
        submitted_at=now,
    )


def record_generated(attempt: Attempt, now: datetime) -> None:
    """The provider is done: the slot is free, the output is fetched next."""
    changes = {"generated_at": now, "next_look_at": now + CLAIM}
    moved = advance(Move(attempt.pk, attempt.state_version, A.GENERATED, changes), now)
    # A request that waits for its picture fetches it itself; if it died, the reconciler rings.
    if moved is not None and not attempt.job.synchronous:
        async_task("dispatch.tasks.fetch", attempt.pk, cluster="traffic")


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
        capacity.hold_until_look(moved, changes["next_look_at"], now)
        submission_uncertain(moved, now)


def _keep_event(attempt: Attempt, outcome: SubmitOutcome, now: datetime) -> None:
    keep_event(attempt, ProviderEvent.Kind.SUBMIT, type(outcome).__name__.lower(), outcome.evidence(), now)
