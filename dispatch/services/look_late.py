"""Looks for a day more for what was given up, so that what it really cost is booked.

What is found is never adopted: the job has ended, and its customer was told so."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from billing import ledger
from billing.reported import Cost
from catalog.providers.registry import adapter_for
from catalog.providers.types import Found, JobStatus, PollFailure, RecoverResult
from catalog.vault import VaultError
from dispatch.models import Attempt, Job, ProviderEvent, ProviderJob
from dispatch.repository import keep_event, keep_found_late, lock_job_of
from dispatch.services import raise_alerts
from dispatch.services.record_poll import ENDS
from dispatch.services.settle import cost_at_end, provider_cost
from dispatch.transport import transport_to

FIRST_LOOK_AFTER = timedelta(minutes=15)
LOOKS_EVERY = timedelta(hours=1)
LOOKS_FOR = timedelta(days=1)
type LookUp = Callable[[Attempt, datetime], RecoverResult]


def look_late(attempt: Attempt, look_up: LookUp, clock: Callable[[], datetime]) -> None:
    """One look at an abandoned attempt that the caller has claimed. `look_up` searches for its task."""
    if attempt.body_sent_at is None:
        _correct(attempt, Cost(0, "rule"), "no byte was sent", clock())
        return
    job_id = _known_job(attempt) or _found_job(attempt, look_up, clock())
    status = _ask(attempt, job_id) if job_id else None
    now = clock()
    if status is None or status.status not in ENDS:
        _look_again(attempt, now)
        return
    _keep(attempt, f"late_{status.status}", {"provider_job_id": job_id, "raw": dict(status.raw)}, now)
    cost = cost_at_end(attempt, status.status == "succeeded", status.usage, now)
    _correct(attempt, cost, f"{job_id} ended as {status.status} after it was given up", now)


def _known_job(attempt: Attempt) -> str | None:
    job = ProviderJob.objects.filter(attempt=attempt).first()
    return job.provider_job_id if job else attempt.recovery.get("found_late")


def _found_job(attempt: Attempt, look_up: LookUp, now: datetime) -> str | None:
    result = look_up(attempt, now)
    with transaction.atomic():
        _keep(attempt, type(result).__name__.lower(), result.evidence(), now)
        if not isinstance(result, Found):
            return None
        if not keep_found_late(attempt, result.provider_job_id, attempt.next_look_at):
            return None
        raise_alerts.unmatched_charge(attempt, result.provider_job_id, now)
    return result.provider_job_id


def _ask(attempt: Attempt, job_id: str) -> JobStatus | None:
    try:
        connection = transport_to(attempt.channel)
    except VaultError:
        return None
    with connection as transport:
        result = adapter_for(attempt.channel.provider).poll(transport, job_id)
    return None if isinstance(result, PollFailure) else result


def _look_again(attempt: Attempt, now: datetime) -> None:
    next_at = now + LOOKS_EVERY
    is_over = next_at > (attempt.finished_at or now) + LOOKS_FOR
    Attempt.objects.filter(pk=attempt.pk).update(next_look_at=None if is_over else next_at)


def _correct(attempt: Attempt, cost: Cost, why: str, now: datetime) -> None:
    """The worst case was booked as our loss: the difference to what it was makes that loss the true one. The
    look that is over is the guard against a second correction."""
    with transaction.atomic():
        lock_job_of(attempt.pk)
        mine = Attempt.objects.filter(pk=attempt.pk, state_version=attempt.state_version)
        if not mine.update(next_look_at=None, state_version=F("state_version") + 1):
            return
        change = cost.micros - (attempt.cost_micros or 0)
        if change == 0:
            return
        Attempt.objects.filter(pk=attempt.pk).update(cost_micros=cost.micros)
        Job.objects.filter(pk=attempt.job_id).update(provider_cost_micros=F("provider_cost_micros") + change)
        details = {"why": why, **cost.as_details()}
        ledger.correct_cost(provider_cost(attempt, change, details, platform_loss=True), now)
        if cost.doubt:
            raise_alerts.cost_in_doubt(attempt, cost, now)


def _keep(attempt: Attempt, outcome: str, raw: dict[str, object], now: datetime) -> None:
    keep_event(attempt, ProviderEvent.Kind.RECOVER, outcome, raw, now)
