"""What waits for a person: the alarms in every header, and the lists of the overview."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Min, Q

from catalog.models import Channel
from dispatch.lifecycle import UNKNOWN_STATES, JobState
from dispatch.models import Attempt, Job, Maintenance
from dispatch.queries.counting import capped
from dispatch.queries.maintenances import maintenances
from dispatch.queries.off_air import off_air
from dispatch.queries.places import channel_circuit
from dispatch.queries.waiting import verdict_now
from dispatch.waiting import Verdict
from health.models import FROZEN, Alert, RefusalRecord, Severity

ALARMS_SHOWN: Final = 50
CHANNELS_SHOWN: Final = 50
_WORST_FIRST: Final = ("circuit_open", "probing", "recovering", "degraded", "disabled", "healthy")
_RECENT: Final = timedelta(hours=1)
_UNDER_WAY: Final = (
    JobState.DISPATCHING,
    JobState.RUNNING,
    JobState.FETCHING_OUTPUT,
    JobState.CANCEL_REQUESTED,
)


def unacknowledged_critical() -> list[Alert]:
    """Oldest first; they stand in every header. At most ALARMS_SHOWN."""
    return list(Alert.objects.needing_acknowledgement().order_by("id")[:ALARMS_SHOWN])


def firing_warnings() -> int:
    """Alerts below critical that still fire and that nobody is on; capped."""
    alone = Alert.objects.unresolved().filter(acknowledged_at=None)
    return capped(alone.exclude(severity=Severity.CRITICAL))


@dataclass(frozen=True, slots=True)
class ChannelState:
    """An administrator's word goes before the circuit's."""

    slug: str
    state: str  # of health
    recovery_successes: int
    since: datetime | None
    maintenance: Maintenance | None


@dataclass(frozen=True, slots=True)
class JobsNow:
    """Counts are capped. `oldest_waiting_at`: creation of the oldest job that has no attempt yet. `verdict`
    is the one of the page that tells why jobs wait."""

    waiting: int
    oldest_waiting_at: datetime | None
    running: int
    finished_lately: int  # in the last hour
    failed_lately: int
    verdict: Verdict

    @property
    def is_quiet(self) -> bool:
        return not (self.waiting or self.running or self.finished_lately)

    @property
    def is_stuck(self) -> bool:
        """Jobs wait and none ran lately, whatever the dispatcher's last look found."""
        return bool(self.waiting) and not (self.running or self.finished_lately)


@dataclass(frozen=True, slots=True)
class Need:
    """`kind` is alarm, uncertain, unpublished or frozen. `count` things of it wait for a person, the oldest
    `since` then; `name` is of the model, where it is about one."""

    kind: str
    count: int
    since: datetime | None
    name: str = ""
    revision: int = 0

    @property
    def key(self) -> str:
        return self.name or self.kind


@dataclass(frozen=True)
class Needs:
    """The oldest first. `last_incident`: the critical alert that was resolved last, told where nothing is."""

    needs: Sequence[Need]
    last_incident: Alert | None


def jobs_now(now: datetime) -> JobsNow:
    """Seven queries."""
    jobs, recent = Job.objects, Q(finished_at__gte=now - _RECENT)
    waiting = jobs.filter(state=JobState.QUEUED)
    lately = jobs.filter(created_at__gte=now - 2 * _RECENT)  # the index is on creation
    failed = (JobState.FAILED, JobState.EXPIRED)
    return JobsNow(
        waiting=capped(waiting),
        oldest_waiting_at=waiting.aggregate(at=Min("created_at"))["at"],
        running=capped(jobs.filter(state__in=_UNDER_WAY)),
        finished_lately=capped(lately.filter(recent, state=JobState.SUCCEEDED)),
        failed_lately=capped(lately.filter(recent, state__in=failed)),
        verdict=verdict_now(now),
    )


def needs_now() -> Needs:
    needs = sorted(_needs(), key=lambda need: (need.since is None, need.since, need.key))
    resolved = Alert.objects.filter(severity="critical", resolved_at__isnull=False).order_by("-id")
    return Needs(needs, None if needs else resolved.first())


def _needs() -> Iterator[Need]:
    if alarms := unacknowledged_critical():
        yield Need("alarm", len(alarms), min(each.opened_at for each in alarms))
    uncertain = Attempt.objects.filter(state__in=sorted(UNKNOWN_STATES))
    if count := capped(uncertain):
        yield Need("uncertain", count, uncertain.aggregate(at=Min("created_at"))["at"])
    for each in off_air():
        # Taken out by a person as it was: that is meant.
        if not each.is_meant:
            yield Need("unpublished", 1, each.since, each.model.slug, each.model.revision)
    frozen = RefusalRecord.objects.filter(FROZEN, ended_at=None)
    if count := capped(frozen):
        yield Need("frozen", count, frozen.aggregate(at=Min("created_at"))["at"])


def channel_states() -> list[ChannelState]:
    """The worst first, at most CHANNELS_SHOWN; two queries."""
    rows, out = Channel.objects.select_related("health").order_by("slug"), maintenances()
    states = sorted(
        (_channel_state(row, out.get(row.pk)) for row in rows),
        key=lambda channel: _WORST_FIRST.index(channel.state),
    )
    return states[:CHANNELS_SHOWN]


def _channel_state(row: Channel, maintenance: Maintenance | None) -> ChannelState:
    circuit = channel_circuit(row)
    return ChannelState(row.slug, circuit.state, circuit.recovery_successes, circuit.since, maintenance)
