"""The recorded changes of one circuit, decided again, against what is stored."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from health.circuit import Circuit, State, Subject, advance
from health.models import HealthEvent
from health.parameters import parse_parameters
from health.replay import circuit_document, parse_circuit, parse_evidence
from health.repository import circuit_of, stored_rows


@dataclass(frozen=True, slots=True)
class Step:
    """A recorded change, or at last (without event) the stored circuit; `problem` is empty where all fits."""

    event: HealthEvent | None
    reached: Circuit
    problem: str


def replay_recorded(subject: Subject, subject_id: int) -> Iterator[Step]:
    """Every recorded change, oldest first, and the stored circuit.

    An event must follow from the circuit it met, its evidence and its parameters, and begin where the one
    before it ended. Pieces that change nothing visible are not recorded, so counts are not compared."""
    reached = Circuit(subject)
    for event in HealthEvent.objects.filter(subject=subject, subject_id=subject_id).order_by("pk"):
        met = parse_circuit(event.before)
        began = _difference("it met", met, "before it was", reached)
        reached, _ = advance(met, parse_evidence(event.evidence), parse_parameters(event.parameters))
        told = _difference("recorded is", _told(event, reached), "its evidence gives", reached)
        yield Step(event, reached, began or told)
    row = stored_rows(subject, [subject_id]).get(subject_id)
    stored = circuit_of(row) if row else Circuit(subject)
    yield Step(None, reached, _difference("stored is", stored, "recorded changes give", reached))


def _told(event: HealthEvent, reached: Circuit) -> Circuit:
    return replace(
        reached,
        state=State(event.to_state),
        recovery_successes=event.recovery_successes,
        epoch=event.epoch,
        cooldown_until=event.cooldown_until,
    )


_LASTING = ("state", "recovery_successes", "epoch", "openings", "cooldown_until")


def _difference(one_is: str, one: Circuit, other_is: str, other: Circuit) -> str:
    differing = [name for name in _LASTING if getattr(one, name) != getattr(other, name)]
    if not differing:
        return ""
    return f"{one_is} {_words(one, differing)}, but {other_is} {_words(other, differing)}"


def _words(circuit: Circuit, names: list[str]) -> str:
    document: dict[str, Any] = circuit_document(circuit)
    return ", ".join(f"{name} {document[name]}" for name in names)
