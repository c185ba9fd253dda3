"""Everything the page of one channel tells."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q, QuerySet

from catalog.models import AuditEntry, Channel
from dispatch.models import Attempt, CapacityLease
from dispatch.queries.health_log import listed
from dispatch.queries.impact import impact_of
from dispatch.queries.places import ChannelNow, channels_now
from dispatch.redundancy import Loss
from health.circuit import Subject
from health.models import HealthEvent

RUNNING_SHOWN: Final = 100
_TOLD: Final = (  # of what runs; no documents
    *("token", "granted_at", "supply__slug", "attempt__public_id", "attempt__state"),
    *("attempt__execution_deadline_at", "attempt__job__public_id", "attempt__job__public_model__slug"),
)
EVENTS_SHOWN: Final = 12


@dataclass(frozen=True)
class ChannelStory:
    """What changes while its page stands there."""

    now: ChannelNow
    running: Sequence[CapacityLease]  # oldest first, at most RUNNING_SHOWN

    @property
    def row(self) -> Channel:
        return self.now.row

    @property
    def longest_until(self) -> datetime | None:
        """When the last of what runs ends at the latest."""
        ends = [each.attempt.execution_deadline_at for each in self.running]
        return max((at for at in ends if at is not None), default=None)


@dataclass(frozen=True)
class ChannelPast:
    """What its page tells beside that."""

    events: Sequence[HealthEvent]  # of it and its supplies, newest first, at most EVENTS_SHOWN
    impact: Sequence[Loss]
    credential: AuditEntry | None  # when the stored secret was first saved
    accepted_at: datetime | None  # when the provider last took something under it
    last_change: AuditEntry | None


def channel_story(slug: str) -> ChannelStory | None:
    """A fixed number of queries, however much runs there."""
    found = channels_now(slug, with_retired=True)
    return ChannelStory(found[0], running_there(found[0].row)) if found else None


def channel_past(channel: ChannelNow, now: datetime) -> ChannelPast:
    """Six queries."""
    changes = AuditEntry.objects.filter(subject=f"channel:{channel.row.public_id}").order_by("-at", "-id")
    return ChannelPast(
        events=list(events_of(channel.row, [each.row.pk for each in channel.supplies])[:EVENTS_SHOWN]),
        impact=impact_without(channel, now),
        credential=_first_saved(channel.row, changes),
        accepted_at=_accepted_at(channel),
        last_change=changes.first(),
    )


def impact_without(channel: ChannelNow, now: datetime) -> list[Loss]:
    return impact_of({each.row.slug for each in channel.supplies}, now)


def running_there(channel: Channel) -> list[CapacityLease]:
    leases = CapacityLease.objects.filter(channel=channel, released_at=None)
    rows = leases.select_related("attempt__job__public_model", "supply").only(*_TOLD)
    return list(rows.order_by("granted_at", "id")[:RUNNING_SHOWN])


def events_of(channel: Channel, supplies: Collection[int]) -> QuerySet[HealthEvent]:
    there = Q(subject=Subject.CHANNEL, subject_id=channel.pk)
    there |= Q(subject=Subject.SUPPLY, subject_id__in=supplies)
    return listed(HealthEvent.objects.filter(there)).order_by("-id")


def _first_saved(row: Channel, changes: QuerySet[AuditEntry]) -> AuditEntry | None:
    """The first save with the hint of the secret that is stored now: how old it is at least."""
    if not row.credential:
        return None
    return changes.filter(action="save channel", after__credential_hint=row.credential_hint).last()


def _accepted_at(channel: ChannelNow) -> datetime | None:
    """By the index of what was sent to each supply: only the newest of each is looked at."""
    newest = [
        Attempt.objects.filter(supply=each.row, request_started_at__isnull=False)
        .order_by("-request_started_at")
        .values("accepted_at")[:20]
        for each in channel.supplies
    ]
    if not newest:
        return None
    found = newest[0].union(*newest[1:], all=True) if len(newest) > 1 else newest[0]
    return max((row["accepted_at"] for row in found if row["accepted_at"]), default=None)
