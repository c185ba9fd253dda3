"""What waits for a person: the alarms in every header, and the short list of the overview."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Min, Q, QuerySet

from catalog.models import AdminState, Channel, PublicModel
from dispatch.lifecycle import UNKNOWN_STATES, JobState
from dispatch.models import Attempt, Job
from health.models import Alert

CAP: Final = 10_000  # counting stops here: "10,000+"
ALARMS_SHOWN: Final = 50
_WORST_FIRST: Final = ("circuit_open", "probing", "recovering", "degraded", "disabled", "healthy")
_RECENT: Final = timedelta(hours=1)


def unacknowledged_critical() -> list[Alert]:
    """Oldest first; they stand in every header. At most ALARMS_SHOWN."""
    return list(Alert.objects.needing_acknowledgement().order_by("id")[:ALARMS_SHOWN])


@dataclass(frozen=True, slots=True)
class ChannelState:
    """An administrator's word goes before the circuit's."""

    slug: str
    state: str  # of health
    recovery_successes: int
    since: datetime | None


@dataclass(frozen=True)
class Overview:
    """Counts are capped at CAP. `oldest_waiting_at`: creation of the oldest job that has no attempt yet."""

    waiting: int
    oldest_waiting_at: datetime | None
    running: int
    finished_lately: int  # in the last hour
    failed_lately: int
    uncertain: int
    oldest_uncertain_at: datetime | None
    saved_not_published: Sequence[PublicModel]
    channels: Sequence[ChannelState]

    @property
    def is_quiet(self) -> bool:
        return not (self.waiting or self.running or self.finished_lately)


def overview(now: datetime) -> Overview:
    jobs, recent = Job.objects, Q(finished_at__gte=now - _RECENT)
    waiting = jobs.filter(state=JobState.QUEUED)
    under_way = (JobState.DISPATCHING, JobState.RUNNING, JobState.FETCHING_OUTPUT, JobState.CANCEL_REQUESTED)
    lately = jobs.filter(created_at__gte=now - 2 * _RECENT)  # the index is on creation
    failed = (JobState.FAILED, JobState.EXPIRED)
    withdrawn = PublicModel.objects.filter(published=False, published_revision__isnull=False)
    uncertain = Attempt.objects.filter(state__in=sorted(UNKNOWN_STATES))
    return Overview(
        waiting=_capped(waiting),
        oldest_waiting_at=waiting.aggregate(at=Min("created_at"))["at"],
        running=_capped(jobs.filter(state__in=under_way)),
        finished_lately=_capped(lately.filter(recent, state=JobState.SUCCEEDED)),
        failed_lately=_capped(lately.filter(recent, state__in=failed)),
        uncertain=_capped(uncertain),
        oldest_uncertain_at=uncertain.aggregate(at=Min("created_at"))["at"],
        saved_not_published=list(withdrawn.order_by("slug")[:20]),
        channels=_channels(),
    )


def _channels() -> list[ChannelState]:
    """The worst first."""
    rows = Channel.objects.select_related("health").order_by("slug")[:50]
    return sorted(map(_channel_state, rows), key=lambda channel: _WORST_FIRST.index(channel.state))


def _channel_state(row: Channel) -> ChannelState:
    if row.state == AdminState.DISABLED:
        return ChannelState(row.slug, "disabled", 0, None)
    if not hasattr(row, "health"):
        return ChannelState(row.slug, "healthy", 0, None)
    return ChannelState(row.slug, row.health.state, row.health.recovery_successes, row.health.changed_at)


def _capped(rows: QuerySet[Any]) -> int:
    return rows.order_by()[:CAP].count()
