"""Refusal records: rows to the values of `health.refusals`, and the question that selection asks."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from catalog.models import Supply
from health.alerts import resolve_alerts
from health.models import RefusalRecord
from health.refusals import Place, Record, Standing, binding, standing, supply_version


@dataclass(frozen=True, slots=True)
class Match:
    """What holds at one supply for one content; `record_id` is what a probe claims."""

    record_id: int
    standing: Standing


def place_of(supply: Supply) -> Place:
    return Place(
        supply_id=supply.pk,
        provider=supply.channel.provider,
        model_family=supply.model_family,
        version=supply_version(supply.model_version, supply.capability_version_id),
    )


def matching_refusals(
    fingerprints: Collection[str], places: Iterable[Place], now: datetime
) -> Mapping[str, Mapping[int, Match]]:
    """By fingerprint and supply id; who is not in it may be tried freely. One query for a whole batch."""
    places = list(places)
    records: dict[str, list[Record]] = defaultdict(list)
    for row in RefusalRecord.objects.filter(fingerprint__in=fingerprints, ended_at=None):
        records[row.fingerprint].append(record_of(row))
    return {fingerprint: _matches(held, places, now) for fingerprint, held in records.items()}


def _matches(records: list[Record], places: list[Place], now: datetime) -> dict[int, Match]:
    bound = {place.supply_id: binding(records, place) for place in places}
    return {
        supply_id: Match(record.id, standing(record, now)) for supply_id, record in bound.items() if record
    }


def record_of(row: RefusalRecord) -> Record:
    return Record(
        id=row.pk,
        provider=row.provider,
        model_family=row.model_family,
        versions={int(supply): version for supply, version in row.versions.items()},
        supply_id=row.supply_id,
        refusals=row.refusals,
        refused_at=row.refused_at,
        last_refused_attempt=row.last_refused_attempt,
        probe=row.probe,
    )


def end_record(row: RefusalRecord, *, by: str, why: str, now: datetime) -> None:
    """Closes the record and what operators were told of it; the caller holds the row's lock."""
    row.ended_at, row.ended_by, row.ended_why, row.probe = now, by, why, ""
    row.save(update_fields=["ended_at", "ended_by", "ended_why", "probe"])
    resolve_alerts([alert_key(code, row) for code in ("refusal_first", "refusal_frozen")], why, now)


def alert_key(code: str, row: RefusalRecord) -> str:
    return f"{code}:{row.public_id}"
