"""Looks for what was left behind: expired leases, late look-ups, ended quarantines, drifted counts.

It decides from what the attempt was doing, and never frees a slot of an attempt that may still run."""

import logging
from collections import Counter
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Q
from django_q.tasks import async_task

from dispatch import capacity
from dispatch.lifecycle import AT_PROVIDER_STATES, AttemptState, Slot
from dispatch.models import Attempt, CapacityLease, LeaseState, Occupancy
from dispatch.repository import claim_attempt
from dispatch.services import raise_alerts
from dispatch.services.advance import advance, wake_dispatcher
from dispatch.services.recover import abandon
from dispatch.services.submit import record_uncertain, stopped_by_supply

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
                return _end_quarantine(lease, attempt, now)
            case state if state in AT_PROVIDER_STATES or state == A.SUBMISSION_UNCERTAIN:
                _prolong(lease, now)
                return "renewed"
            case _:
                # A final state releases in the same transaction; a lease left here is a defect worth a line.
                logger.error(
                    "A finished attempt still held a lease; released", extra={"attempt": attempt.public_id}
                )
                capacity.change_slot(attempt, Slot.RELEASED, now, outcome="unproven")
                return "released"


def _send_again(lease: CapacityLease, attempt: Attempt, now: datetime) -> str:
    """Nothing was sent: the lease goes to another worker under a new fence, and the task is rung again."""
    stopped = stopped_by_supply(attempt)
    if stopped is not None:
        advance(stopped, now)
        return "failed"
    _prolong(lease, now, new_fence=True)
    async_task("dispatch.tasks.submit", attempt.pk, cluster="traffic")
    return "rung_again"


def _prolong(lease: CapacityLease, now: datetime, new_fence: bool = False) -> None:
    CapacityLease.objects.filter(pk=lease.pk, fence=lease.fence, released_at=None).update(
        fence=lease.fence + int(new_fence), renewed_at=now, expires_at=now + capacity.LEASE_TTL
    )


def _end_quarantine(lease: CapacityLease, attempt: Attempt, now: datetime) -> str:
    if lease.quarantine_until is not None and now < lease.quarantine_until:
        _prolong(lease, now)
        return "renewed"
    capacity.change_slot(attempt, Slot.RELEASED, now, outcome="unproven")
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


def recount(now: datetime) -> list[str]:
    """Proves the counted slots equal to the leases; what differs is corrected and alerted. The subjects."""
    with transaction.atomic():
        counted = {(row.kind, row.subject_id): row for row in _lock_all()}
        leases = _counted_leases()
        drifted = [
            subject
            for subject, row in counted.items()
            if (row.confirmed, row.unknown) != leases.get(subject, (0, 0))
        ]
        for kind, number in drifted:
            row, (confirmed, unknown) = counted[kind, number], leases.get((kind, number), (0, 0))
            raise_alerts.lease_drift(
                f"{Occupancy.Kind(kind).label}:{number}",
                {"confirmed": confirmed, "unknown": unknown},
                {"confirmed": row.confirmed, "unknown": row.unknown},
                now,
            )
            Occupancy.objects.filter(pk=row.pk).update(confirmed=confirmed, unknown=unknown)
    return [f"{kind}:{number}" for kind, number in drifted]


def _lock_all() -> list[Occupancy]:
    return list(Occupancy.objects.select_for_update().order_by("kind", "subject_id"))


def _counted_leases() -> dict[tuple[str, int], tuple[int, int]]:
    columns = {
        Occupancy.Kind.GROUP: "group_id",
        Occupancy.Kind.CHANNEL: "channel_id",
        Occupancy.Kind.SUPPLY: "supply_id",
    }
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for kind, column in columns.items():
        rows = (
            CapacityLease.objects.filter(released_at=None, **{f"{column}__isnull": False})
            .values_list(column)
            .annotate(
                live=Count("pk", filter=Q(state=LeaseState.LIVE)),
                unknown=Count("pk", filter=Q(state=LeaseState.UNKNOWN)),
            )
        )
        counts |= {(kind.value, number): (live, unknown) for number, live, unknown in rows}
    return counts
