"""A provider really refused content: remembered, counted, and told to operators twice at most."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from catalog.models import Supply
from health.alerts import raise_alert, resolve_alert
from health.memory import alert_key, end_record, place_of, record_of
from health.models import RefusalRecord
from health.refusals import REPROBE_AFTER, Place, binding, next_probe_at, refused
from health.replay import moment


def record_refusal(fingerprint: str, place: Place, attempt: str, now: datetime) -> RefusalRecord:
    """Counts the refusal of `attempt` (a public id) on the record that holds at `place`, new where none does.

    For a real refusal only, never for a skip. Idempotent for the record's last attempt; gives back the
    re-probe that `attempt` may have claimed. Part of the transaction that settles the attempt."""
    with transaction.atomic(savepoint=False):
        while True:
            rows = {row.pk: row for row in _live(fingerprint, place).select_for_update().order_by("pk")}
            record = binding([record_of(row) for row in rows.values()], place)
            _give_back((row for row in rows.values() if record is None or row.pk != record.id), attempt)
            if record:
                return _count(rows[record.id], place, attempt, now)
            # By the rows just read: one that somebody opened since may well hold here.
            of_supply = any(row.supply_id is None for row in rows.values())
            if opened := _open(fingerprint, place, attempt, of_supply, now):
                _tell(opened, place, "refusal_first", now)
                return opened


def _give_back(rows: Iterable[RefusalRecord], attempt: str) -> None:
    """A probe of a record that held when it was claimed, and not any more: the supply has changed since. The
    others that it binds may try."""
    for row in rows:
        if row.probe == attempt:
            row.probe = ""
            row.save(update_fields=["probe"])


def _live(fingerprint: str, place: Place) -> QuerySet[RefusalRecord]:
    return RefusalRecord.objects.filter(
        fingerprint=fingerprint, provider=place.provider, model_family=place.model_family, ended_at=None
    )


def _open(
    fingerprint: str, place: Place, attempt: str, of_supply: bool, now: datetime
) -> RefusalRecord | None:
    """The new record; None: somebody opened it in between.

    Of the whole family, unless a record of the family goes on and only this supply has crossed a boundary."""
    _end_superseded(fingerprint, place, now)
    row = RefusalRecord(
        fingerprint=fingerprint,
        provider=place.provider,
        model_family=place.model_family,
        supply_id=place.supply_id if of_supply else None,
        versions=({} if of_supply else _versions(place)) | {str(place.supply_id): place.version},
        refusals=1,
        refused_at=now,
        last_refused_attempt=attempt,
        created_at=now,
    )
    RefusalRecord.objects.bulk_create([row], ignore_conflicts=True)
    return RefusalRecord.objects.filter(public_id=row.public_id).first()


def _end_superseded(fingerprint: str, place: Place, now: datetime) -> None:
    """The supply's own record from before its latest boundary holds nowhere any more."""
    for row in _live(fingerprint, place).filter(supply=place.supply_id).select_for_update():
        if row.versions.get(str(place.supply_id)) != place.version:
            end_record(row, by="", why="the supply crossed a boundary", now=now)


def _versions(place: Place) -> dict[str, str]:
    """Of every supply that the new record holds for: what changes later is that supply's boundary."""
    family = Supply.objects.filter(channel__provider=place.provider, model_family=place.model_family)
    return {str(supply.pk): place_of(supply).version for supply in family.select_related("channel")}


def _count(row: RefusalRecord, place: Place, attempt: str, now: datetime) -> RefusalRecord:
    before = record_of(row)
    after = refused(before, attempt, now)
    if after == before:
        return row
    row.refusals, row.refused_at = after.refusals, after.refused_at
    row.last_refused_attempt, row.probe = after.last_refused_attempt, after.probe
    if next_probe_at(after) is None and row.frozen_at is None:
        row.frozen_at = now
        resolve_alert(alert_key("refusal_first", row), "frozen", now)
        _tell(row, place, "refusal_frozen", now)
    row.save(update_fields=["refusals", "refused_at", "last_refused_attempt", "probe", "frozen_at"])
    return row


def _tell(row: RefusalRecord, place: Place, code: str, now: datetime) -> None:
    """The first states the rule; a frozen one, that only a boundary or an operator lifts it."""
    next_at = next_probe_at(record_of(row))
    raise_alert(
        code,
        subject=f"refusal:{row.public_id}",
        dedupe_key=alert_key(code, row),
        details={
            "provider": row.provider,
            "model_family": row.model_family,
            "supply": Supply.objects.values_list("slug", flat=True).get(pk=place.supply_id),
            "attempt": row.last_refused_attempt,
            "refusals": row.refusals,
            "next_probe_at": moment(next_at) if next_at else None,
            "reprobe_after_s": [int(wait.total_seconds()) for wait in REPROBE_AFTER],
        },
        now=now,
    )
