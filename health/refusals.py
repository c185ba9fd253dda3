"""How often the same bytes may be sent where they were refused; pure.

A content refusal is about the bytes, and time does not change bytes: three re-probes after the first refusal,
each counted from the last real one, then never again until a boundary."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

REPROBE_AFTER = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=6))
FROZEN_AT_REFUSALS = len(REPROBE_AFTER) + 1
# Nobody knows when a running probe ends: whoever waits for it looks again after this.
PROBE_LOOK_AGAIN = timedelta(minutes=1)


class RefusalState(StrEnum):
    COOLDOWN = "cooldown"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Place:
    """A supply as refusal memory sees it; a change of `version` is a boundary."""

    supply_id: int
    provider: str
    model_family: str
    version: str


@dataclass(frozen=True, slots=True)
class Record:
    """What one provider refused in one model family; `supply_id` is set after that supply's own boundary."""

    id: int
    provider: str
    model_family: str
    versions: Mapping[int, str]  # supply id -> its version when it was first bound by this record
    supply_id: int | None = None
    refusals: int | None = None  # real ones
    refused_at: datetime | None = None  # the last real one
    last_refused_attempt: str = ""
    probe: str = ""  # the attempt that has claimed the re-probe


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a supply may be tried: at `next_probe_at` at the earliest, or not again while frozen."""

    state: RefusalState
    next_probe_at: datetime | None = None


def supply_version(model_version: str, capability_version_id: int | None) -> str:
    """What must stay the same for a supply to be the same place."""
    return f"{model_version}|{capability_version_id or '-'}"


def binding(records: Iterable[Record], place: Place) -> Record | None:
    """Which record of one fingerprint holds at `place`; the supply's own comes before the shared."""
    holding = [record for record in records if _holds(record, place)]
    return min(holding, key=lambda record: record.supply_id is None, default=None)


def _holds(record: Record, place: Place) -> bool:
    if (record.provider, record.model_family) != (place.provider, place.model_family):
        return False
    if record.supply_id not in (None, place.supply_id):
        return False
    # A supply that came later has crossed no boundary.
    return record.versions.get(place.supply_id, place.version) == place.version


def standing(record: Record, now: datetime) -> Standing:
    """A record whose count or time is missing counts as frozen."""
    due = next_probe_at(record)
    if due is None:
        return Standing(RefusalState.FROZEN)
    if record.probe:
        due = max(due, now + PROBE_LOOK_AGAIN)
    return Standing(RefusalState.COOLDOWN, due)


def next_probe_at(record: Record) -> datetime | None:
    """The earliest re-probe; None: frozen."""
    if not record.refusals or record.refused_at is None or record.refusals >= FROZEN_AT_REFUSALS:
        return None
    return record.refused_at + REPROBE_AFTER[record.refusals - 1]


def may_claim(record: Record, now: datetime) -> bool:
    due = next_probe_at(record)
    return not record.probe and due is not None and now >= due


def refused(record: Record, attempt: str, now: datetime) -> Record:
    """After a real refusal of `attempt`; told twice of the same one, it counts it once."""
    if record.last_refused_attempt == attempt:
        return record
    return replace(
        record,
        refusals=None if record.refusals is None else record.refusals + 1,
        refused_at=now,
        last_refused_attempt=attempt,
        probe="" if record.probe == attempt else record.probe,
    )
