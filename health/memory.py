"""Refusal records: rows to the values of `health.refusals`, and the question that selection asks."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from health.models import RefusalRecord
from health.refusals import Place, Record, Standing, binding, standing


@dataclass(frozen=True, slots=True)
class Match:
    """What holds at one supply for one content; `record` is what a probe claims."""

    record: int  # id of the row
    standing: Standing


def matching_refusals(
    fingerprints: Collection[str], places: Iterable[Place], now: datetime
) -> Mapping[str, Mapping[int, Match]]:
    """By fingerprint and supply id; who is not in it may be tried. One query for a whole batch."""
    places = list(places)
    rows: dict[str, dict[Record, int]] = defaultdict(dict)
    for row in RefusalRecord.objects.filter(fingerprint__in=fingerprints, ended_at=None):
        rows[row.fingerprint][record_of(row)] = row.pk
    return {fingerprint: _matches(records, places, now) for fingerprint, records in rows.items()}
