"""What the router needs to know of channels, supplies and groups, in one query each."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime

from health.circuit import State, Subject
from health.models import GroupPressure
from health.pressure import probe_due
from health.repository import ROWS, pressure_of


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """One circuit, and the provider's own earliest next use."""

    state: State = State.HEALTHY
    recovery_successes: int = 0
    epoch: int = 0
    cooldown_until: datetime | None = None
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """By id of the channel or supply."""

    channels: dict[int, HealthFacts]
    supplies: dict[int, HealthFacts]


_UNTRIED = HealthFacts()
_COLUMNS = [field.name for field in fields(HealthFacts)]


def health_snapshot(channel_ids: Collection[int], supply_ids: Collection[int]) -> HealthSnapshot:
    """All of `channel_ids` and `supply_ids`; those without a row are healthy, in epoch 0."""
    return HealthSnapshot(_facts(Subject.CHANNEL, channel_ids), _facts(Subject.SUPPLY, supply_ids))


def _facts(subject: Subject, ids: Collection[int]) -> dict[int, HealthFacts]:
    stored = {
        row.pk: HealthFacts(
            State(row.state), row.recovery_successes, row.epoch, row.cooldown_until, row.not_before
        )
        for row in ROWS[subject]._default_manager.filter(pk__in=ids).only(*_COLUMNS)
    }
    return {subject_id: stored.get(subject_id, _UNTRIED) for subject_id in ids}


@dataclass(frozen=True, slots=True)
class GroupPause:
    """`probe_due`: the pause is over, and the one attempt that probes the group claims it."""

    not_before: datetime
    probe_due: bool


def group_pauses(group_ids: Collection[int], now: datetime) -> dict[int, GroupPause]:
    """Of the groups that are paused or must be probed; who is not in it is free.

    `health.services.claim_group_probe` claims a due probe."""
    rows = GroupPressure.objects.filter(pk__in=group_ids, not_before__isnull=False)
    pauses = {
        row.pk: GroupPause(row.not_before, probe_due(pressure_of(row), now)) for row in rows if row.not_before
    }
    return {
        group_id: pause for group_id, pause in pauses.items() if pause.probe_due or now < pause.not_before
    }
