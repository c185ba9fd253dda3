"""Every channel, supply and group as they stand: circuit, slots, maintenance. A fixed number of queries."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q

from catalog.models import AdminState, CapacityGroup, Channel, Supply, SupplyBinding
from dispatch.capacity import Kind
from dispatch.lifecycle import AttemptState
from dispatch.models import CapacityLease, LeaseState, Maintenance
from dispatch.queries.bindings_now import Circuit, circuit_of
from dispatch.queries.maintenances import maintenances
from dispatch.routing.filters import RANK
from health.circuit import effective_capacity

type Key = tuple[str, int]  # kind and id

_UNTRIED: Final = Circuit("healthy", 0, None, "")


@dataclass(frozen=True, slots=True)
class Slots:
    """`in_use + leased + unknown + free = limit`; above a limit that was lowered, `free` is 0 and `over` says
    by how many. `open_to_new`: the limit in force now, by the circuit."""

    in_use: int
    leased: int  # selected, nothing sent yet
    unknown: int
    limit: int
    open_to_new: int

    @property
    def taken(self) -> int:
        return self.in_use + self.leased + self.unknown

    @property
    def free(self) -> int:
        return max(0, self.limit - self.taken)

    @property
    def over(self) -> int:
        return max(0, self.taken - self.limit)


@dataclass(frozen=True, slots=True)
class SupplyNow:
    """`circuit` is the worse one of supply and channel, with its place."""

    row: Supply
    circuit: Circuit
    slots: Slots
    maintenance: Maintenance | None  # of its channel
    is_retired: bool

    @property
    def is_out(self) -> bool:
        """Takes nothing new: switched off, draining, or with an open circuit."""
        is_on = self.row.state == self.row.channel.state == AdminState.ENABLED
        return not is_on or self.circuit.state in ("circuit_open", "disabled")


@dataclass(frozen=True, slots=True)
class ChannelNow:
    row: Channel
    circuit: Circuit
    slots: Slots
    maintenance: Maintenance | None
    supplies: Sequence[SupplyNow]
    is_retired: bool

    @property
    def usable(self) -> int:
        return sum(not each.is_out for each in self.supplies)

    @property
    def worst(self) -> int:
        """The rank of the worst circuit of the channel and its supplies."""
        ranks = [RANK[each.circuit.state] for each in self.supplies]  # type: ignore[index]
        return max([RANK[self.circuit.state], *ranks])  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class GroupNow:
    row: CapacityGroup
    slots: Slots
    channels: Sequence[str]  # slugs


@dataclass(frozen=True, slots=True)
class _Around:
    """What every place is told by, read once, so that the numbers of all places of a page agree."""

    taken: Mapping[Key, Counter[str]]
    maintenances: Mapping[int, Maintenance]  # by channel
    bound: frozenset[int]  # supplies that an enabled binding uses


def _around() -> _Around:
    bound = SupplyBinding.objects.filter(enabled=True).order_by().values_list("supply_id", flat=True)
    return _Around(_taken_slots(), maintenances(), frozenset(bound.distinct()))


def places_now() -> tuple[list[ChannelNow], list[GroupNow]]:
    """Channels by slug, without retired ones, and groups by account; six queries."""
    around = _around()
    return _channels(around, "", with_retired=False), _groups(around)


def channels_now(only: str = "", with_retired: bool = False) -> list[ChannelNow]:
    """By slug; `only` one of them. A channel is retired when it is off and no enabled binding uses it."""
    return _channels(_around(), only, with_retired)


def supplies_now(with_retired: bool = False) -> list[SupplyNow]:
    """By slug; four queries."""
    return [each for each in _supplies(_around(), "") if with_retired or not each.is_retired]


def _channels(around: _Around, only: str, with_retired: bool) -> list[ChannelNow]:
    rows = Channel.objects.select_related("health", "capacity_group").order_by("slug")
    rows = rows.filter(slug=only) if only else rows
    of_channel: dict[int, list[SupplyNow]] = defaultdict(list)
    for supply in _supplies(around, only):
        of_channel[supply.row.channel_id].append(supply)
    found = [_channel(row, of_channel[row.pk], around) for row in rows]
    return [
        replace(each, supplies=[s for s in each.supplies if with_retired or not s.is_retired])
        for each in found
        if with_retired or only or not each.is_retired
    ]


def _supplies(around: _Around, channel: str) -> list[SupplyNow]:
    """All, or those of one channel by its slug; retired ones too."""
    rows = Supply.objects.select_related("health", "channel__health").order_by("slug")
    rows = rows.filter(channel__slug=channel) if channel else rows
    return [_supply(row, around) for row in rows]


def _groups(around: _Around) -> list[GroupNow]:
    slugs = ArrayAgg(
        "channels__slug", filter=Q(channels__isnull=False), order_by="channels__slug", default=[]
    )
    rows = CapacityGroup.objects.annotate(slugs=slugs).order_by("account", "endpoint")
    return [
        GroupNow(
            row,
            _slots_of(around.taken, Kind.GROUP, row.pk, row.capacity, row.capacity),
            row.slugs,
        )
        for row in rows
    ]


def _taken_slots() -> Mapping[Key, Counter[str]]:
    """From the leases themselves, by one statement."""
    rows: Iterable[Mapping[str, Any]] = (
        CapacityLease.objects.filter(released_at=None)
        .values("group_id", "channel_id", "supply_id", "state")
        .annotate(n=Count("pk"), unsent=Count("pk", filter=Q(attempt__state=AttemptState.READY)))
        .order_by()
    )
    taken: dict[Key, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counted = _counted(row)
        for kind, name in (
            (Kind.GROUP, "group_id"),
            (Kind.CHANNEL, "channel_id"),
            (Kind.SUPPLY, "supply_id"),
        ):
            if row[name] is not None:
                taken[kind.value, row[name]].update(counted)
    return taken


def _counted(row: Mapping[str, Any]) -> dict[str, int]:
    if row["state"] == LeaseState.UNKNOWN:
        return {"unknown": row["n"]}
    return {"in_use": row["n"] - row["unsent"], "leased": row["unsent"]}


def _slots_of(taken: Mapping[Key, Counter[str]], kind: Kind, pk: int, limit: int, open_to_new: int) -> Slots:
    counted = taken.get((kind.value, pk), Counter())
    return Slots(counted["in_use"], counted["leased"], counted["unknown"], limit, open_to_new)


def channel_circuit(row: Channel) -> Circuit:
    """The channel's own; an administrator's word goes first."""
    if row.state == AdminState.DISABLED:
        return Circuit("disabled", 0, None, "channel", by_admin=True)
    return _own(row, "channel")


def _own(row: Channel | Supply, place: str) -> Circuit:
    health = getattr(row, "health", None)
    if health is None:
        return _UNTRIED
    return Circuit(health.state, health.recovery_successes, health.changed_at, place)


def _channel(row: Channel, supplies: Sequence[SupplyNow], around: _Around) -> ChannelNow:
    circuit = channel_circuit(row)
    return ChannelNow(
        row=row,
        circuit=circuit,
        slots=_slots_of(around.taken, Kind.CHANNEL, row.pk, row.concurrency, _open(row, circuit)),
        maintenance=around.maintenances.get(row.pk),
        supplies=supplies,
        is_retired=row.state == AdminState.DISABLED
        and row.pk not in around.maintenances
        and all(each.is_retired for each in supplies),
    )


def _supply(row: Supply, around: _Around) -> SupplyNow:
    circuit = circuit_of(row)
    if circuit.state == "healthy":
        circuit = _own(row, "")
    return SupplyNow(
        row=row,
        circuit=circuit,
        slots=_slots_of(around.taken, Kind.SUPPLY, row.pk, row.concurrency, _open(row, circuit)),
        maintenance=around.maintenances.get(row.channel_id),
        is_retired=row.pk not in around.bound
        and row.channel_id not in around.maintenances
        and AdminState.DISABLED in (row.state, row.channel.state),
    )


def _open(row: Channel | Supply, circuit: Circuit) -> int:
    """Slots that new work may take, by the circuit and the operator's switch."""
    if row.state != AdminState.ENABLED:
        return 0
    return effective_capacity(circuit.state, circuit.recovery_successes, row.concurrency)


def worst_first(channels: Iterable[ChannelNow]) -> list[ChannelNow]:
    return sorted(channels, key=lambda each: (-each.worst, each.row.slug))
