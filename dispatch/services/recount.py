"""Once a minute slots are counted anew: leases from what the attempts do, counts from the leases.

A difference is a defect, or a hand in the database: it is corrected, audited and alerted."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q

from catalog.audit import Actor, Change, record
from catalog.models import CapacityGroup, Channel, Supply
from dispatch import capacity
from dispatch.capacity import Kind, SlotChange, Subject
from dispatch.lifecycle import CONFIRMED_STATES, UNKNOWN_STATES, AttemptState, Slot, slot_in
from dispatch.models import Attempt, CapacityLease, LeaseState, Occupancy
from dispatch.repository import lock_job_of
from dispatch.services import raise_alerts

RECOUNT = Actor("recount", "reconciler")
_OCCUPYING = CONFIRMED_STATES | UNKNOWN_STATES
_ROWS = {Kind.GROUP: CapacityGroup, Kind.CHANNEL: Channel, Kind.SUPPLY: Supply}
_LEASE_COLUMNS = {Kind.GROUP: "group_id", Kind.CHANNEL: "channel_id", Kind.SUPPLY: "supply_id"}
_Counts = tuple[int, int]  # confirmed, unknown


def recount(now: datetime) -> list[str]:
    """What differed, by `attempt:public id`, `channel:…`, `supply:…` or `group:…`."""
    return [*_right_leases(now), *_right_counts(now)]


def _right_leases(now: datetime) -> list[str]:
    found = (_right_lease(attempt_id, now) for attempt_id in (*_without_lease(), *_with_wrong_lease()))
    return [subject for subject in found if subject]


def _without_lease() -> list[int]:
    held = CapacityLease.objects.filter(attempt=OuterRef("pk"), released_at=None)
    attempts = Attempt.objects.filter(~Exists(held), state__in=_OCCUPYING)
    return list(attempts.order_by("pk").values_list("pk", flat=True))


def _with_wrong_lease() -> list[int]:
    """An abandoned attempt's lease is unknown until its quarantine ends."""
    unknown = UNKNOWN_STATES | {AttemptState.ABANDONED}
    wrong = Q(state=LeaseState.LIVE) & ~Q(attempt__state__in=CONFIRMED_STATES)
    wrong |= Q(state=LeaseState.UNKNOWN) & ~Q(attempt__state__in=unknown)
    leases = CapacityLease.objects.filter(wrong, released_at=None)
    return list(leases.order_by("attempt").values_list("attempt", flat=True))


def _right_lease(attempt_id: int, now: datetime) -> str:
    with transaction.atomic():
        lock_job_of(attempt_id)
        attempt = Attempt.objects.select_related("channel", "job").get(pk=attempt_id)
        slot = slot_in(AttemptState(attempt.state))
        lease = CapacityLease.objects.filter(attempt=attempt, released_at=None).first()
        before = Slot.RELEASED.value if lease is None else lease.state
        if before == slot:
            return ""
        if lease is None:
            capacity.grant_again(attempt, slot, now)
        else:
            capacity.change_slots([SlotChange(attempt.pk, slot, outcome="unproven")], now)
        subject = f"attempt:{attempt.public_id}"
        _tell(subject, {"lease": before}, {"lease": slot.value}, now)
        return subject


def _right_counts(now: datetime) -> list[str]:
    with transaction.atomic():
        _make_missing(_counted_leases().keys())
        rows = {(row.kind, row.subject_id): row for row in _lock_all()}
        leases = _counted_leases()
        drifted = [
            (subject, row, leases.get(subject, (0, 0)))
            for subject, row in rows.items()
            if (row.confirmed, row.unknown) != leases.get(subject, (0, 0))
        ]
        return [_right_count(subject, row, counts, now) for subject, row, counts in drifted]


def _make_missing(subjects: Collection[Subject]) -> None:
    known = set(Occupancy.objects.values_list("kind", "subject_id"))
    missing = [Occupancy(kind=kind, subject_id=number) for kind, number in set(subjects) - known]
    Occupancy.objects.bulk_create(missing, ignore_conflicts=True)


def _lock_all() -> list[Occupancy]:
    return list(Occupancy.objects.select_for_update().order_by("kind", "subject_id"))


def _counted_leases() -> dict[Subject, _Counts]:
    counts: dict[Subject, _Counts] = {}
    for kind, column in _LEASE_COLUMNS.items():
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


def _right_count(subject: Subject, row: Occupancy, counts: _Counts, now: datetime) -> str:
    confirmed, unknown = counts
    named = _named(subject)
    stored = {"confirmed": row.confirmed, "unknown": row.unknown}
    _tell(named, stored, {"confirmed": confirmed, "unknown": unknown}, now)
    Occupancy.objects.filter(pk=row.pk).update(confirmed=confirmed, unknown=unknown)
    return named


def _named(subject: Subject) -> str:
    kind, number = Kind(subject[0]), subject[1]
    row = _ROWS[kind]._default_manager.filter(pk=number).values_list("public_id", flat=True).first()
    return f"{kind.label.lower()}:{row or number}"


def _tell(subject: str, before: Mapping[str, object], after: Mapping[str, object], now: datetime) -> None:
    raise_alerts.lease_drift(subject, stored=before, counted=after, now=now)
    record(RECOUNT, Change("correct slots", subject, before, after), now)
