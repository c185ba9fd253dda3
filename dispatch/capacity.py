"""Slots of channels, supplies and groups: counted in one row each, held by leases.

Rows are locked in one order everywhere: group, channel, supply (by `Occupancy.Kind`, then id). Measured:
another order on release costs a deadlock a second. Callers run inside a transaction."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q

from dispatch.lifecycle import CONFIRMED_STATES, Slot
from dispatch.models import Attempt, CapacityLease, LeaseState, Occupancy

Kind = Occupancy.Kind
Subject = tuple[str, int]  # kind, id of the row

LEASE_TTL = timedelta(seconds=60)

_COUNT = """
WITH locked AS (
    SELECT counted.id FROM dispatch_occupancy AS counted
    JOIN unnest(%(kinds)s::text[], %(numbers)s::bigint[]) AS of(kind, number)
      ON counted.kind = of.kind AND counted.subject_id = of.number
    ORDER BY counted.kind, counted.subject_id FOR UPDATE OF counted)
UPDATE dispatch_occupancy AS counted
SET confirmed = counted.confirmed + %(confirmed)s, unknown = counted.unknown + %(unknown)s
FROM locked WHERE counted.id = locked.id"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt would stand: one slot in each."""

    channel_id: int
    supply_id: int
    group_id: int | None

    def subjects(self) -> list[Subject]:
        group = [] if self.group_id is None else [(Kind.GROUP.value, self.group_id)]
        return [*group, (Kind.CHANNEL.value, self.channel_id), (Kind.SUPPLY.value, self.supply_id)]


def locked_occupancy(places: Iterable[Place]) -> dict[Subject, Occupancy]:
    """The counts of all `places`, locked until the transaction ends; missing rows are made."""
    subjects = _subjects(places)
    if not subjects:
        return {}
    condition = _any_of(subjects)
    rows = _locked(condition)
    missing = [subject for subject in subjects if subject not in rows]
    if missing:
        Occupancy.objects.bulk_create(
            [Occupancy(kind=kind, subject_id=number) for kind, number in missing], ignore_conflicts=True
        )
        rows = _locked(condition)
    return rows


def seen_occupancy(places: Iterable[Place]) -> dict[Subject, Occupancy]:
    """The counts as they are, without a lock; where nothing was counted yet, nothing is taken."""
    subjects = _subjects(places)
    rows = Occupancy.objects.filter(_any_of(subjects)) if subjects else []
    found = {(row.kind, row.subject_id): row for row in rows}
    return {each: found.get(each) or Occupancy(kind=each[0], subject_id=each[1]) for each in subjects}


def _subjects(places: Iterable[Place]) -> list[Subject]:
    return sorted({subject for place in places for subject in place.subjects()})


def _any_of(subjects: Iterable[Subject]) -> Q:
    condition = Q()
    for kind in Kind.values:
        condition |= Q(kind=kind, subject_id__in=[number for of, number in subjects if of == kind])
    return condition


def _locked(condition: Q) -> dict[Subject, Occupancy]:
    rows = Occupancy.objects.select_for_update().filter(condition).order_by("kind", "subject_id")
    return {(row.kind, row.subject_id): row for row in rows}


def take(place: Place, occupancy: dict[Subject, Occupancy]) -> None:
    """Counts one more confirmed slot at `place`, in memory; `write` stores the batch."""
    for subject in place.subjects():
        occupancy[subject].confirmed += 1


def write(occupancy: dict[Subject, Occupancy]) -> None:
    Occupancy.objects.bulk_update(occupancy.values(), ["confirmed", "unknown"])


def change_slot(attempt: Attempt, slot: Slot, now: datetime, outcome: str = "") -> bool:
    """Brings the attempt's lease to what its new state asks for; true when a slot became free.

    Idempotent: a lease that is released, or already as it should be, changes nothing."""
    lease = CapacityLease.objects.select_for_update().filter(attempt=attempt, released_at=None).first()
    if lease is None or lease.state == slot:
        return False
    if slot is Slot.RELEASED:
        return _release(lease, now, outcome)
    before, lease.state = lease.state, LeaseState(slot.value)
    lease.save(update_fields=["state"])
    _count(place_of(lease), {_COLUMN[before]: -1, _COLUMN[lease.state]: 1})
    return False


def release(token: str, now: datetime, outcome: str) -> bool:
    """Frees the slot of the lease `token`: completed, failed, or unproven. False: it was free already, as
    when the acknowledgement of the first release was lost and it is repeated."""
    lease = CapacityLease.objects.select_for_update().filter(token=token, released_at=None).first()
    return lease is not None and _release(lease, now, outcome)


def _release(lease: CapacityLease, now: datetime, outcome: str) -> bool:
    before, lease.state = lease.state, LeaseState.RELEASED
    lease.released_at, lease.outcome = now, outcome
    lease.save(update_fields=["state", "released_at", "outcome"])
    _count(place_of(lease), {_COLUMN[before]: -1})
    return True


def grant_again(attempt: Attempt, slot: Slot, now: datetime) -> CapacityLease:
    """A lease for an attempt that holds none though its state asks for one; whether or not there is room."""
    lease = CapacityLease.objects.create(
        attempt=attempt,
        channel_id=attempt.channel_id,
        supply_id=attempt.supply_id,
        group_id=attempt.channel.capacity_group_id,
        customer_id=attempt.job.customer_id,
        state=LeaseState(slot.value),
        channel_epoch=attempt.channel_epoch,
        supply_epoch=attempt.supply_epoch,
        granted_at=now,
        renewed_at=now,
        expires_at=now + LEASE_TTL,
    )
    place = place_of(lease)
    locked_occupancy([place])
    _count(place, {_COLUMN[lease.state]: 1})
    return lease


def place_of(lease: CapacityLease) -> Place:
    return Place(lease.channel_id, lease.supply_id, lease.group_id)


_COLUMN = {LeaseState.LIVE.value: "confirmed", LeaseState.UNKNOWN.value: "unknown"}


def _count(place: Place, change: dict[str, int]) -> None:
    kinds, numbers = zip(*place.subjects(), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT,
            {
                "kinds": list(kinds),
                "numbers": list(numbers),
                "confirmed": change.get("confirmed", 0),
                "unknown": change.get("unknown", 0),
            },
        )


def renew(attempt_id: int, fence: int, now: datetime, until: datetime) -> bool:
    """Prolongs the lease if `fence` still holds it; false: it was given to another process meanwhile."""
    return bool(
        CapacityLease.objects.filter(attempt_id=attempt_id, fence=fence, released_at=None).update(
            renewed_at=now, expires_at=until
        )
    )


def hold_until_look(attempt: Attempt, next_look_at: datetime, now: datetime) -> None:
    """From acceptance on the lease is the attempt's own: it lasts a little past the next look at it, and
    while the provider is believed to work no longer than that may last: then it is looked at again."""
    until = next_look_at + LEASE_TTL
    if attempt.execution_deadline_at is not None and attempt.state in CONFIRMED_STATES:
        until = min(until, max(attempt.execution_deadline_at, now))
    CapacityLease.objects.filter(attempt=attempt, released_at=None).update(renewed_at=now, expires_at=until)
