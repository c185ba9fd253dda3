"""Looks for what was left behind: expired leases, late look-ups, ended quarantines.

It decides from what the attempt was doing, and never frees a slot of an attempt that may still run."""

import logging
from collections import Counter
from datetime import datetime, timedelta

from django.db import transaction
from django_q.tasks import async_task

from dispatch import capacity
from dispatch.held_channels import held_until
from dispatch.lifecycle import AT_PROVIDER_STATES, AttemptState
from dispatch.models import Attempt, CapacityLease
from dispatch.repository import claim_attempt
from dispatch.services.advance import advance, wake_dispatcher
from dispatch.services.record_submission import record_uncertain
from dispatch.services.recover import abandon
from dispatch.services.submit import stopped_by_supply

logger = logging.getLogger(__name__)
A = AttemptState
BATCH = 200
RING_AGAIN_AFTER = timedelta(minutes=1)


def reconcile(now: datetime) -> Counter[str]:
    """One look; how many of each it found. What breaks on one attempt keeps it from no other."""
    found: Counter[str] = Counter()
    for lease in _expired(now):
        try:
            found[_reconcile_lease(lease, now)] += 1
        except Exception:
            logger.exception("A lease could not be reconciled", extra={"attempt": lease.attempt.public_id})
    found["recover"] = sum(
        _ring_due(state, "dispatch.tasks.recover", now) for state in (A.SUBMISSION_UNCERTAIN, A.ABANDONED)
    )
    found["fetch"] = sum(_ring_due(state, "dispatch.tasks.fetch", now) for state in (A.GENERATED, A.FETCHING))
    found["abandoned"] = _abandon_overdue(now)
    return +found


def _expired(now: datetime) -> list[CapacityLease]:
    return list(
        CapacityLease.objects.filter(released_at=None, expires_at__lte=now)
        .select_related("attempt__job", "attempt__channel", "attempt__supply", "attempt__policy")
        .order_by("expires_at")[:BATCH]
    )


def _reconcile_lease(lease: CapacityLease, now: datetime) -> str:
    attempt = lease.attempt
    with transaction.atomic():
        match attempt.state:
            case A.READY:
                return _send_again(lease, attempt, now)
            case A.SUBMITTING:
                record_uncertain(attempt, "worker_lost", "the worker that sent it did not come back", now)
                return "uncertain"
            case A.ABANDONED:
                return _end_quarantine(lease, now)
            case state if state in AT_PROVIDER_STATES or state == A.SUBMISSION_UNCERTAIN:
                return _look_again(lease, attempt, now)
            case _:
                # A final state releases in the same transaction; a lease left here is a defect worth a line.
                logger.error(
                    "A finished attempt still held a lease; released", extra={"attempt": attempt.public_id}
                )
                capacity.release(lease.token, now, outcome="unproven")
                return "released"


def _send_again(lease: CapacityLease, attempt: Attempt, now: datetime) -> str:
    """Nothing was sent: the lease goes to another worker under a new fence, and the task is rung again."""
    stopped = stopped_by_supply(attempt, held_until(now))
    if stopped is not None:
        advance(stopped, now)
        return "failed"
    if not _prolong(lease, now, new_fence=True):
        return "taken"
    async_task("dispatch.tasks.submit", attempt.pk, cluster="traffic")
    return "rung_again"


def _look_again(lease: CapacityLease, attempt: Attempt, now: datetime) -> str:
    """The provider may still work on it: it keeps its slot, and is polled or looked for at once."""
    if not _prolong(lease, now):
        return "taken"
    seen = Attempt.objects.filter(pk=attempt.pk, state_version=attempt.state_version)
    seen.filter(next_look_at__gt=now).update(next_look_at=now)
    return "renewed"


def _prolong(lease: CapacityLease, now: datetime, new_fence: bool = False) -> bool:
    """False: somebody renewed it since it was seen to have run out."""
    seen = CapacityLease.objects.filter(
        pk=lease.pk, fence=lease.fence, expires_at=lease.expires_at, released_at=None
    )
    return bool(
        seen.update(fence=lease.fence + int(new_fence), renewed_at=now, expires_at=now + capacity.LEASE_TTL)
    )


def _end_quarantine(lease: CapacityLease, now: datetime) -> str:
    if lease.quarantine_until is not None and now < lease.quarantine_until:
        _prolong(lease, now)
        return "renewed"
    capacity.release(lease.token, now, outcome="unproven")
    wake_dispatcher()
    return "quarantine_ended"


def _ring_due(state: AttemptState, task: str, now: datetime) -> int:
    """Rings one task for each attempt in `state` whose next look is due; its claim keeps it to one."""
    with transaction.atomic():
        due = list(
            Attempt.objects.select_for_update(skip_locked=True)
            .filter(state=state, next_look_at__lte=now)
            .order_by("next_look_at", "id")[:BATCH]
        )
        for attempt in due:
            # Not again at the next look a second later; the task claims it by version when it begins.
            claim_attempt(attempt, now + RING_AGAIN_AFTER)
            async_task(task, attempt.pk, cluster="traffic")
    return len(due)


def _abandon_overdue(now: datetime) -> int:
    """An accepted attempt whose end nobody could prove until its uncertain deadline."""
    overdue = Attempt.objects.select_related("job", "channel", "policy").filter(
        state=A.OUTCOME_UNCERTAIN, uncertain_deadline_at__lte=now
    )[:BATCH]
    for attempt in overdue:
        try:
            with transaction.atomic():
                abandon(attempt, now)
        except Exception:
            logger.exception("An attempt could not be given up", extra={"attempt": attempt.public_id})
    return len(overdue)
