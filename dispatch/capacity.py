"""Slots of channels, supplies and groups: counted in one row each, held by leases.

Rows are locked in one order everywhere: group, channel, supply (by `Occupancy.Kind`, then id). Measured:
another order on release costs a deadlock a second. Callers run inside a transaction."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from catalog.rows import all_rows
from catalog.statements import prepared
from dispatch.lifecycle import CONFIRMED_STATES, Slot
from dispatch.models import Attempt, CapacityLease, LeaseState, Occupancy

Kind = Occupancy.Kind
Subject = tuple[str, int]  # kind, id of the row

LEASE_TTL = timedelta(seconds=60)

_COUNT = """
WITH change AS (
    SELECT * FROM unnest(%(kinds)b::text[], %(numbers)b::bigint[], %(confirmed)b::int[], %(unknown)b::int[])
        AS change(kind, number, confirmed, unknown)),
locked AS (
    SELECT counted.id, change.confirmed, change.unknown FROM dispatch_occupancy AS counted
    JOIN change ON counted.kind = change.kind AND counted.subject_id = change.number
    ORDER BY counted.kind, counted.subject_id FOR UPDATE OF counted)
UPDATE dispatch_occupancy AS counted
SET confirmed = counted.confirmed + locked.confirmed, unknown = counted.unknown + locked.unknown
FROM locked WHERE counted.id = locked.id"""

_HELD = """
FROM dispatch_capacitylease AS lease WHERE lease.attempt_id = ANY(%b::bigint[]) AND lease.released_at IS NULL
ORDER BY lease.id FOR UPDATE"""

_RENEW = """
UPDATE dispatch_capacitylease AS lease SET renewed_at = %(now)s, expires_at = %(until)s
FROM unnest(%(attempts)b::bigint[], %(fences)b::int[]) AS held(attempt, fence)
WHERE lease.attempt_id = held.attempt AND lease.fence = held.fence AND lease.released_at IS NULL
RETURNING lease.attempt_id"""

_HOLD = """
UPDATE dispatch_capacitylease AS lease SET renewed_at = %(now)s, expires_at = held.until
FROM unnest(%(attempts)b::bigint[], %(until)b::timestamptz[]) AS held(attempt, until)
WHERE lease.attempt_id = held.attempt AND lease.released_at IS NULL"""


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


@dataclass(frozen=True, slots=True)
class SlotChange:
    """What an attempt's new state asks of its lease; `outcome` is kept with one that is released."""

    attempt_id: int
    slot: Slot
    outcome: str = ""


def change_slots(changes: Iterable[SlotChange], now: datetime) -> bool:
    """Brings the leases of attempts to what their new states ask for; true when a slot became free.

    Idempotent: a lease that is released, or already as it should be, changes nothing."""
    asked = {change.attempt_id: change for change in changes}
    if not asked:
        return False
    held = (lease for (lease,) in all_rows(_HELD, [list(asked)], lease=CapacityLease))
    leases = [lease for lease in held if lease.state != asked[lease.attempt_id].slot]
    counted: Counter[tuple[Subject, str]] = Counter()
    for lease in leases:
        _recount(counted, lease, asked[lease.attempt_id].slot)
    _write_leases(leases, asked, now)
    _count(counted)
    return any(asked[lease.attempt_id].slot is Slot.RELEASED for lease in leases)


def _write_leases(leases: list[CapacityLease], asked: Mapping[int, SlotChange], now: datetime) -> None:
    alike: dict[tuple[Slot, str], list[int]] = defaultdict(list)
    for lease in leases:
        change = asked[lease.attempt_id]
        alike[change.slot, change.outcome].append(lease.pk)
    for (slot, outcome), ids in alike.items():
        ended = {"released_at": now, "outcome": outcome} if slot is Slot.RELEASED else {}
        CapacityLease.objects.filter(pk__in=ids).update(state=LeaseState(slot.value), **ended)


def release(token: str, now: datetime, outcome: str) -> bool:
    """Frees the slot of the lease `token`: completed, failed, or unproven. False: it was free already, as
    when the acknowledgement of the first release was lost and it is repeated."""
    lease = CapacityLease.objects.select_for_update().filter(token=token, released_at=None).first()
    return lease is not None and change_slots([SlotChange(lease.attempt_id, Slot.RELEASED, outcome)], now)


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
    locked_occupancy([place_of(lease)])
    _count(Counter({(subject, _COLUMN[lease.state]): 1 for subject in place_of(lease).subjects()}))
    return lease


def place_of(lease: CapacityLease) -> Place:
    return Place(lease.channel_id, lease.supply_id, lease.group_id)


_COLUMN = {
    Slot.LIVE.value: "confirmed",
    Slot.UNKNOWN.value: "unknown",
}  # by a lease's state, which says the same


def _recount(counted: Counter[tuple[Subject, str]], lease: CapacityLease, slot: Slot) -> None:
    """From the column that the lease is counted in to that of `slot`."""
    for subject in place_of(lease).subjects():
        counted[subject, _COLUMN[lease.state]] -= 1
        if slot is not Slot.RELEASED:
            counted[subject, _COLUMN[slot]] += 1


def _count(counted: Counter[tuple[Subject, str]]) -> None:
    """Adds to the columns of each subject, all by one statement."""
    subjects = sorted({subject for subject, _ in counted})
    if not subjects:
        return
    with prepared() as cursor:
        cursor.execute(
            _COUNT,
            {
                "kinds": [kind for kind, _ in subjects],
                "numbers": [number for _, number in subjects],
                "confirmed": [counted[subject, "confirmed"] for subject in subjects],
                "unknown": [counted[subject, "unknown"] for subject in subjects],
            },
        )


def renew(fences: Mapping[int, int], now: datetime, until: datetime) -> set[int]:
    """Prolongs the leases of attempts that are still held by the fence given for each; the attempts whose
    were. Another was given to another process meanwhile."""
    if not fences:
        return set()
    with prepared() as cursor:
        cursor.execute(
            _RENEW, {"attempts": list(fences), "fences": list(fences.values()), "now": now, "until": until}
        )
        return {attempt for (attempt,) in cursor.fetchall()}


def hold_until_look(attempt: Attempt, next_look_at: datetime, now: datetime) -> None:
    hold_until_looks([(attempt, next_look_at)], now)


def hold_until_looks(looks: Iterable[tuple[Attempt, datetime]], now: datetime) -> None:
    """From acceptance on the lease is the attempt's own: it lasts a little past the next look at it, and
    while the provider is believed to work no longer than that may last: then it is looked at again."""
    until = {attempt.pk: _held_until(attempt, next_look_at, now) for attempt, next_look_at in looks}
    if until:
        with prepared() as cursor:
            cursor.execute(
                _HOLD, {"attempts": sorted(until), "until": [until[pk] for pk in sorted(until)], "now": now}
            )


def _held_until(attempt: Attempt, next_look_at: datetime, now: datetime) -> datetime:
    until = next_look_at + LEASE_TTL
    if attempt.execution_deadline_at is not None and attempt.state in CONFIRMED_STATES:
        until = min(until, max(attempt.execution_deadline_at, now))
    return until
