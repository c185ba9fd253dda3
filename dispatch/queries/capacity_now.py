"""Slots of every group, channel and supply, and the leases that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.models import CapacityGroup, Channel, Supply
from dispatch.models import CapacityLease, LeaseState
from dispatch.queries.places import ChannelNow, GroupNow, places_now
from health.snapshot import GroupPause, group_pauses

LEASES_SHOWN = 200
_TOLD = (  # of a lease; no documents
    *("token", "state", "granted_at", "expires_at", "quarantine_until", "supply__slug", "channel__slug"),
    *("attempt__public_id", "attempt__state", "attempt__uncertain_deadline_at", "attempt__job__public_id"),
)


@dataclass(frozen=True)
class CapacityNow:
    groups: Sequence[GroupNow]
    pauses: dict[int, GroupPause]  # by group
    channels: Sequence[ChannelNow]
    unknown: Sequence[CapacityLease]  # oldest first, at most LEASES_SHOWN
    live: Sequence[CapacityLease]  # those that run out first, at most LEASES_SHOWN

    @property
    def is_empty(self) -> bool:
        return not self.channels


def capacity_now(now: datetime) -> CapacityNow:
    """A fixed number of queries."""
    leases = CapacityLease.objects.select_related("attempt__job", "supply", "channel").only(*_TOLD)
    held = leases.filter(released_at=None)
    channels, groups = places_now()
    return CapacityNow(
        groups=groups,
        pauses=group_pauses([each.row.pk for each in groups], now),
        channels=channels,
        unknown=list(held.filter(state=LeaseState.UNKNOWN).order_by("granted_at", "id")[:LEASES_SHOWN]),
        live=list(held.filter(state=LeaseState.LIVE).order_by("expires_at", "id")[:LEASES_SHOWN]),
    )


def find_limited(kind: str, name: str) -> CapacityGroup | Channel | Supply | None:
    """A group by its public id, a channel or a supply by its slug."""
    if kind == "group":
        return CapacityGroup.objects.filter(public_id=name).first()
    if kind == "channel":
        return Channel.objects.filter(slug=name).first()
    return Supply.objects.select_related("channel").filter(slug=name).first() if kind == "supply" else None
