"""Stored circuits and the evidence they are given: lock, decide, store, one event and one alert per change.

The services of this app call it inside their transaction; nothing else writes a circuit."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from catalog.models import Channel, Supply
from health.alerts import raise_alert, resolve_alert
from health.circuit import Change, Circuit, Evidence, Kind, State, Subject, advance
from health.models import HealthEvent
from health.parameters import Parameters
from health.replay import by_second, circuit_document, evidence_document, moment
from health.repository import Pause, Policies, circuit_of, locked_rows, store, stored_rows


@dataclass(frozen=True, slots=True)
class Piece:
    """Evidence for the circuit of one channel or supply, and where it came from."""

    subject_id: int
    channel_id: int  # the supply's, or the channel itself
    evidence: Evidence
    attempt: str = ""  # public id
    actor: str = ""
    reason: str = ""
    pause: Pause | None = None


def take(subject: Subject, pieces: Iterable[Piece], policies: Policies, now: datetime) -> list[HealthEvent]:
    """Gives `pieces` to their circuits in their order, and returns the events of what changed."""
    by_subject: dict[int, list[Piece]] = defaultdict(list)
    for piece in pieces:
        if piece.pause or piece.evidence.kind is not Kind.NONE:
            by_subject[piece.subject_id].append(piece)
    if subject is Subject.CHANNEL:
        by_subject = _without_inert(by_subject, policies)
    events = []
    for subject_id, row in locked_rows(subject, by_subject).items():
        after, of_row = _advanced(circuit_of(row), by_subject[subject_id], policies, now)
        store(row, after, _latest_pause(by_subject[subject_id]), now)
        events += of_row
    HealthEvent.objects.bulk_create(events)
    for event in events:
        _tell(event, now)
    return events


def _without_inert(by_channel: dict[int, list[Piece]], policies: Policies) -> dict[int, list[Piece]]:
    """A healthy channel's success changes nothing, and most pieces are one: those need no lock."""
    rows = stored_rows(Subject.CHANNEL, by_channel)
    circuits = {channel: circuit_of(rows[channel]) for channel in rows}
    return {
        channel: pieces
        for channel, pieces in by_channel.items()
        if any(_moves(circuits.get(channel, _UNTRIED_CHANNEL), piece, policies) for piece in pieces)
    }


_UNTRIED_CHANNEL = Circuit(Subject.CHANNEL)


def _moves(circuit: Circuit, piece: Piece, policies: Policies) -> bool:
    return (
        piece.pause is not None
        or advance(circuit, piece.evidence, _parameters(circuit, piece, policies))[0] != circuit
    )


def _parameters(circuit: Circuit, piece: Piece, policies: Policies) -> Parameters:
    return policies.in_force(circuit.subject, piece.subject_id, piece.channel_id)


def _latest_pause(pieces: Iterable[Piece]) -> Pause | None:
    pauses = [piece.pause for piece in pieces if piece.pause]
    return max(pauses, key=lambda pause: pause.until, default=None)


def _advanced(
    circuit: Circuit, pieces: Iterable[Piece], policies: Policies, now: datetime
) -> tuple[Circuit, list[HealthEvent]]:
    events = []
    for piece in pieces:
        parameters = _parameters(circuit, piece, policies)
        circuit, change = advance(circuit, piece.evidence, parameters)
        circuit = replace(circuit, window=by_second(circuit.window))
        if change:
            events.append(_event(change, piece, parameters, now))
    return circuit, events


def _event(change: Change, piece: Piece, parameters: Parameters, now: datetime) -> HealthEvent:
    return HealthEvent(
        at=now,
        subject=change.after.subject,
        subject_id=piece.subject_id,
        from_state=change.before.state,
        to_state=change.after.state,
        cause=change.cause,
        recovery_successes=change.after.recovery_successes,
        epoch=change.after.epoch,
        cooldown_until=change.after.cooldown_until,
        attempt=piece.attempt,
        actor=piece.actor,
        reason=piece.reason,
        evidence=evidence_document(piece.evidence),
        before=circuit_document(change.before),
        parameters=asdict(parameters),
    )


def named(subject: Subject, subject_id: int) -> tuple[str, str]:
    """`kind:public id`, as audit entries name it, and the slug, by which alerts do."""
    row: Channel | Supply
    if subject is Subject.CHANNEL:
        row = Channel.objects.only("public_id", "slug").get(pk=subject_id)
    else:
        row = Supply.objects.only("public_id", "slug").get(pk=subject_id)
    return f"{subject}:{row.public_id}", row.slug


def _tell(event: HealthEvent, now: datetime) -> None:
    """One alert from the first opening until the circuit is whole again, or the operator's own doing."""
    name, slug = named(Subject(event.subject), event.subject_id)
    code = f"{event.subject}_circuit_open"
    key = f"{code}:{name}"
    if event.to_state == State.CIRCUIT_OPEN:
        details = {
            "cause": event.cause,
            "code": event.evidence.get("code", ""),
            "attempt": event.attempt,
            "epoch": event.epoch,
            "cooldown_until": moment(event.cooldown_until) if event.cooldown_until else "",
            "event": event.public_id,
        }
        subject = f"{event.subject}:{slug}"
        raise_alert(code, subject=subject, dedupe_key=key, details=details, now=now)
    elif event.to_state in (State.HEALTHY, State.DISABLED):
        resolve_alert(key, f"{event.cause} ({event.to_state})", now)
