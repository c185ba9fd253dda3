"""Finds out what became of a submission whose answer was lost. It only ever looks; it never posts again."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction

from catalog.providers.registry import adapter_for
from catalog.providers.types import (
    Absent,
    Accepted,
    CannotTell,
    Found,
    JobStatus,
    ProviderError,
    RecoverResult,
    SupplyTarget,
    Window,
)
from catalog.vault import VaultError
from dispatch import backoff, capacity
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease, ProviderEvent
from dispatch.moves import Move
from dispatch.repository import claim_attempt, keep_event, keep_found_late
from dispatch.sending import may_still_send
from dispatch.services import raise_alerts
from dispatch.services.advance import advance
from dispatch.services.look_late import FIRST_LOOK_AFTER, look_late
from dispatch.services.record_submission import record_acceptance
from dispatch.transport import transport_to

A = AttemptState
# A minute, and two by which the clocks of hosts may differ or be put back between two looks.
LISTING_STARTS_BEFORE = timedelta(minutes=3)
EVER = datetime.fromtimestamp(0, UTC)
CLOCKS_DIFFER_BY = timedelta(seconds=10)  # at most, of two workers' machines


def recover(attempt_id: int, clock: Callable[[], datetime]) -> None:
    """One look-up for an attempt in `submission_uncertain`; records found, absent or cannot tell.

    Of one that was given up only its cost is still looked for."""
    attempt = (
        Attempt.objects.select_related("channel", "supply", "job", "policy", "cost_rule_version")
        .filter(pk=attempt_id, state__in=(A.SUBMISSION_UNCERTAIN, A.ABANDONED))
        .first()
    )
    now = clock()
    if attempt is None or not claim_attempt(attempt, now + timedelta(seconds=settings.POLL_DEADLINE_S + 10)):
        return
    if attempt.state == A.ABANDONED:
        look_late(attempt, look, clock)
        return
    if attempt.body_sent_at is None:
        _record_unsent(attempt, now)
        return
    _sent_by(attempt, now)
    # Asked before the look: what was sent while a listing was read may be in none.
    sender_lives = may_still_send(attempt.pk)
    result = look(attempt, now)
    if sender_lives and isinstance(result, Absent):
        result = CannotTell("the worker that may send it has not ended")
    record_recovery(attempt, result, clock())


def look(attempt: Attempt, now: datetime) -> RecoverResult:
    """What the provider tells of it now; records nothing. First what a callback told, which the provider has
    to confirm; then what the account lists."""
    supply = attempt.supply
    try:
        connection = transport_to(attempt.channel)
    except VaultError as error:
        return CannotTell(f"the credential can't be opened: {error}")
    adapter = adapter_for(attempt.channel.provider)
    with connection as transport:
        for job_id in _told_by_callbacks(attempt):
            status = adapter.poll(transport, job_id)
            if isinstance(status, JobStatus):
                return Found(job_id, status.raw_status, {"told_by": "callback", **status.raw})
        return adapter.recover(
            transport,
            attempt.client_request_key,
            attempt.request_hash,
            SupplyTarget(supply.provider_model, supply.model_version, modality=supply.modality),
            Window(_listing_starts(attempt, now), now),
        )


def _listing_starts(attempt: Attempt, now: datetime) -> datetime:
    """Of a clock that was put back since nobody knows by how much: what it said then is no bound."""
    began = attempt.request_started_at or attempt.created_at
    return EVER if began > now or "sent_by" in attempt.recovery else began - LISTING_STARTS_BEFORE


def _told_by_callbacks(attempt: Attempt) -> list[str]:
    """The jobs that verified callbacks named, the last first; at most three."""
    told = attempt.events.filter(kind=ProviderEvent.Kind.CALLBACK).order_by("-id")
    named = told.values_list("raw__provider_job_id", flat=True)[:20]
    return list(dict.fromkeys(str(job_id) for job_id in named if job_id))[:3]


def record_recovery(attempt: Attempt, result: RecoverResult, now: datetime) -> None:
    with transaction.atomic():
        _keep(attempt, result, now)
        match result:
            case Found():
                accepted = Accepted(result.provider_job_id, None, result.raw_status, (), result.raw)
                if record_acceptance(attempt, accepted, now):
                    raise_alerts.submission_resolved(attempt, "found at the provider", now)
                elif keep_found_late(attempt, result.provider_job_id, now):
                    raise_alerts.unmatched_charge(attempt, result.provider_job_id, now)
                else:
                    _try_later(attempt, now)  # another attempt's, so nothing is found
            case Absent():
                _record_absence(attempt, now)
            case _:
                _try_later(attempt, now)


def _record_unsent(attempt: Attempt, now: datetime) -> None:
    """The moment before the first byte was never recorded, and no byte leaves without that record."""
    with transaction.atomic():
        fail_as_not_created(attempt, "no byte was sent", now)


def _record_absence(attempt: Attempt, now: datetime) -> None:
    """A listing proves absence when it is read twice, apart, after the send deadline."""
    first_read = _noted(attempt, "absent_at", now)
    apart = timedelta(seconds=settings.RECOVERY_ABSENCE_READS_APART_S)
    send_over = _sent_by(attempt, now) + timedelta(seconds=settings.PROVIDER_DEADLINE_S) + CLOCKS_DIFFER_BY
    if first_read is not None and now - first_read >= apart:
        fail_as_not_created(attempt, "absent from two complete listings", now)
        return
    if first_read is None and now >= send_over:
        attempt.recovery = {**attempt.recovery, "absent_at": now.isoformat()}
        _wait(attempt, now, apart.total_seconds() + 1)
        return
    wait_s = (send_over - now).total_seconds() if first_read is None else apart.total_seconds()
    _wait(attempt, now, max(1.0, min(wait_s, backoff.recovery_s(_tries(attempt) + 1, 0))))


def _sent_by(attempt: Attempt, now: datetime) -> datetime:
    """When it had been sent at the latest, by the clock as it runs now: where that was put back since, by the
    first look after, which the attempt remembers with its next."""
    sent_at, noted = attempt.body_sent_at or now, _noted(attempt, "sent_by", now)
    if noted is None and sent_at > now:
        attempt.recovery = {**attempt.recovery, "sent_by": now.isoformat()}
        return now
    return noted or sent_at


def _noted(attempt: Attempt, name: str, now: datetime) -> datetime | None:
    """A moment of an earlier look. None of one in times to come: the clock was put back since, and how long
    ago it was is not known."""
    said = attempt.recovery.get(name)
    at = datetime.fromisoformat(said) if said else None
    return None if at is None or at > now else at


def fail_as_not_created(attempt: Attempt, why: str, now: datetime) -> None:
    """Proved absent: the slot is free, and another supply may be tried."""
    error = ProviderError("capacity", "supply", True, "not_created", why)
    if advance(Move(attempt.pk, attempt.state_version, A.FAILED, {"next_look_at": None}, error), now):
        raise_alerts.submission_resolved(attempt, f"proved not created: {why}", now)


def _try_later(attempt: Attempt, now: datetime) -> None:
    """Gives up at the deadline; until then waits longer each time."""
    deadline = attempt.uncertain_deadline_at
    if deadline is not None and now >= deadline:
        abandon(attempt, now)
        return
    _wait(attempt, now, backoff.recovery_s(_tries(attempt) + 1, settings.RECOVERY_FIRST_WAIT_S))


def abandon(attempt: Attempt, now: datetime) -> None:
    """Nobody could find out in time: the job ends, the slot stays taken until its quarantine ends."""
    late = {"next_look_at": now + FIRST_LOOK_AFTER}
    moved = advance(Move(attempt.pk, attempt.state_version, A.ABANDONED, late), now)
    if moved is None:
        return
    ends = max(now, attempt.execution_deadline_at or now) + timedelta(
        seconds=attempt.policy.parsed.quarantine_s
    )
    CapacityLease.objects.filter(attempt=attempt, released_at=None).update(
        quarantine_until=ends, expires_at=ends
    )
    raise_alerts.submission_resolved(attempt, "given up", now)
    raise_alerts.attempt_unstuck(attempt, "given up", now)
    raise_alerts.submission_abandoned(attempt, now)


def _tries(attempt: Attempt) -> int:
    return int(attempt.recovery.get("tries", 0))


def _wait(attempt: Attempt, now: datetime, seconds: float) -> None:
    attempt.recovery = {**attempt.recovery, "tries": _tries(attempt) + 1}
    at = now + timedelta(seconds=seconds)
    if claim_attempt(attempt, at):
        Attempt.objects.filter(pk=attempt.pk).update(recovery=attempt.recovery)
        capacity.hold_until_look(attempt, at, now)


def _keep(attempt: Attempt, result: RecoverResult, now: datetime) -> None:
    keep_event(attempt, ProviderEvent.Kind.RECOVER, type(result).__name__.lower(), result.evidence(), now)
