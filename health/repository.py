"""Rows of circuits and policies to the values of the rules, and back."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from health.circuit import Circuit, State, Subject
from health.models import ChannelHealth, CircuitRow, GroupPressure, HealthPolicy, SupplyHealth
from health.parameters import Parameters, parse_parameters
from health.pressure import Press, Pressure
from health.replay import (
    correlations_document,
    moment,
    parse_correlations,
    parse_moment,
    parse_window,
    window_document,
)

ROWS: Mapping[Subject, type[CircuitRow]] = {Subject.CHANNEL: ChannelHealth, Subject.SUPPLY: SupplyHealth}


@dataclass(frozen=True, slots=True)
class Pause:
    """What a provider said of its earliest next use."""

    until: datetime
    code: str


def stored_rows(subject: Subject, ids: Collection[int]) -> dict[int, CircuitRow]:
    """The rows of `ids` by id, not locked; without a row nothing happened yet."""
    return ROWS[subject]._default_manager.in_bulk(ids)


def locked_rows(subject: Subject, ids: Collection[int]) -> dict[int, CircuitRow]:
    """The rows of `ids`, locked in the order of the ids until the transaction ends; missing rows are made.

    Whoever needs both locks channels before supplies."""
    rows = _locked(subject, ids)
    missing = sorted(set(ids) - set(rows))
    if missing:
        model = ROWS[subject]
        model._default_manager.bulk_create([_new(model, pk) for pk in missing], ignore_conflicts=True)
        rows = _locked(subject, ids)
    return rows


def _new(model: type[CircuitRow], subject_id: int) -> CircuitRow:
    row = model()
    row.pk = subject_id
    return row


def _locked(subject: Subject, ids: Collection[int]) -> dict[int, CircuitRow]:
    rows = ROWS[subject]._default_manager.select_for_update().filter(pk__in=ids).order_by("pk")
    return {row.pk: row for row in rows}


def circuit_of(row: CircuitRow) -> Circuit:
    return Circuit(
        subject=Subject.SUPPLY if isinstance(row, SupplyHealth) else Subject.CHANNEL,
        state=State(row.state),
        epoch=row.epoch,
        recovery_successes=row.recovery_successes,
        failures=row.failures,
        successes=row.successes,
        openings=row.openings,
        cooldown_until=row.cooldown_until,
        window=parse_window(row.window) if isinstance(row, SupplyHealth) else (),
        correlations=parse_correlations(row.correlations) if isinstance(row, ChannelHealth) else (),
    )


def store(row: CircuitRow, circuit: Circuit, pause: Pause | None, now: datetime) -> None:
    """Writes what differs; the caller holds the row's lock. The latest pause holds."""
    columns: dict[str, Any] = {
        "state": circuit.state.value,
        "epoch": circuit.epoch,
        "recovery_successes": circuit.recovery_successes,
        "failures": circuit.failures,
        "successes": circuit.successes,
        "openings": circuit.openings,
        "cooldown_until": circuit.cooldown_until,
    }
    if isinstance(row, SupplyHealth):
        columns["window"] = window_document(circuit.window)
    else:
        columns["correlations"] = correlations_document(circuit.correlations)
    if row.state != circuit.state:
        columns["changed_at"] = now
    if pause and (row.not_before is None or pause.until > row.not_before):
        columns |= {"not_before": pause.until, "not_before_code": pause.code}
    changed = {name: value for name, value in columns.items() if getattr(row, name) != value}
    if changed:
        type(row)._default_manager.filter(pk=row.pk).update(version=row.version + 1, **changed)


def locked_pressures(group_ids: Collection[int]) -> dict[int, GroupPressure]:
    """The rows of `group_ids`, locked in the order of the ids; missing ones are made."""
    GroupPressure.objects.bulk_create(
        [GroupPressure(group_id=group_id) for group_id in sorted(group_ids)], ignore_conflicts=True
    )
    rows = GroupPressure.objects.select_for_update().filter(pk__in=group_ids).order_by("pk")
    return {row.pk: row for row in rows}


def pressure_of(row: GroupPressure) -> Pressure:
    presses = tuple(Press(parse_moment(at, "presses"), channel) for at, channel in row.presses)
    return Pressure(presses, row.not_before, row.probing)


def store_pressure(row: GroupPressure, pressure: Pressure) -> None:
    row.presses = [[moment(press.at), press.channel_id] for press in pressure.presses]
    row.not_before, row.probing = pressure.not_before, pressure.probing
    row.save()


type _PolicyKey = tuple[int | None, int | None]  # channel, supply; (None, None): the installation


@dataclass(frozen=True, slots=True)
class Policies:
    """The newest policies that concern some channels and supplies."""

    newest: Mapping[_PolicyKey, Mapping[str, Any]]

    def in_force(self, subject: Subject, subject_id: int, channel_id: int) -> Parameters:
        """The installation's, overlaid by the channel's, overlaid by the supply's."""
        if not self.newest:
            return _DEFAULTS
        supply_id = subject_id if subject is Subject.SUPPLY else None
        keys = dict.fromkeys([(None, None), (channel_id, None), (None, supply_id)])
        return parse_parameters(*(self.newest[key] for key in keys if key in self.newest))


_DEFAULTS = Parameters()


def policies_of(channel_ids: Collection[int], supply_ids: Collection[int]) -> Policies:
    concerned = Q(channel=None, supply=None) | Q(channel__in=channel_ids) | Q(supply__in=supply_ids)
    rows = HealthPolicy.objects.filter(concerned).order_by("channel", "supply", "-version")
    newest = rows.distinct("channel", "supply").values_list("channel", "supply", "parameters")
    return Policies({(channel, supply): parameters for channel, supply, parameters in newest})
