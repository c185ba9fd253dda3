"""Timed evidence and circuits as documents, and evidence run through the machine; pure.

`manage.py health_replay FILE` reads these documents; health events keep them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from health.circuit import (
    Circuit,
    Correlation,
    Evidence,
    Kind,
    Samples,
    State,
    Subject,
    advance,
    effective_capacity,
)
from health.parameters import Parameters, ParametersError, parse_parameters


class CaseError(ValueError):
    """The document is not a case; the message says where and what is expected."""


@dataclass(frozen=True, slots=True)
class Case:
    subject: Subject
    capacity: int
    parameters: Parameters
    evidence: tuple[Evidence, ...]


def parse_case(document: Any) -> Case:
    """`{"subject", "capacity", "parameters"?, "evidence": [...]}`; raises CaseError."""
    if not isinstance(document, Mapping):
        raise CaseError("a case is an object with subject, capacity and evidence")
    capacity = document.get("capacity")
    if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
        raise CaseError(f"capacity: {capacity!r} is not a whole number of at least 1")
    pieces = document.get("evidence")
    if not isinstance(pieces, list):
        raise CaseError("evidence: expected a list")
    return Case(
        subject=_word(Subject, document.get("subject"), "subject"),
        capacity=capacity,
        parameters=_parameters(document.get("parameters")),
        evidence=tuple(parse_evidence(piece, f"evidence[{number}]") for number, piece in enumerate(pieces)),
    )


def _parameters(document: Any) -> Parameters:
    if not isinstance(document, Mapping | None):
        raise CaseError("parameters: expected an object")
    try:
        return parse_parameters(document or {})
    except ParametersError as error:
        raise CaseError(f"parameters.{error}") from error


def parse_evidence(document: Any, where: str = "evidence") -> Evidence:
    """One piece; a piece without `epoch` is current. Raises CaseError."""
    if not isinstance(document, Mapping):
        raise CaseError(f"{where}: expected an object")
    epoch = document.get("epoch")
    if epoch is not None and (not isinstance(epoch, int) or isinstance(epoch, bool)):
        raise CaseError(f"{where}.epoch: {epoch!r} is not a whole number")
    return Evidence(
        at=parse_moment(document.get("at"), f"{where}.at"),
        kind=_word(Kind, document.get("kind"), f"{where}.kind"),
        epoch=epoch,
        scope=str(document.get("scope") or ""),
        code=str(document.get("code") or ""),
        supply=str(document.get("supply") or ""),
    )


def evidence_document(evidence: Evidence) -> dict[str, Any]:
    """The piece as `parse_evidence` reads it; empty fields are left out."""
    document: dict[str, Any] = {"at": moment(evidence.at), "kind": evidence.kind.value}
    optional = {
        "epoch": evidence.epoch,
        "scope": evidence.scope,
        "code": evidence.code,
        "supply": evidence.supply,
    }
    return document | {name: value for name, value in optional.items() if value not in (None, "")}


def replay(case: Case) -> Iterator[dict[str, Any]]:
    """The visible state after each piece."""
    circuit = Circuit(case.subject)
    for evidence in case.evidence:
        circuit, _ = advance(circuit, evidence, case.parameters)
        yield visible_state(circuit, case.capacity)


def visible_state(circuit: Circuit, capacity: int) -> dict[str, Any]:
    return {
        "state": circuit.state.value,
        "recovery_successes": circuit.recovery_successes,
        "epoch": circuit.epoch,
        "effective_capacity": effective_capacity(circuit.state, circuit.recovery_successes, capacity),
        "cooldown_until": moment(circuit.cooldown_until) if circuit.cooldown_until else None,
    }


def circuit_document(circuit: Circuit) -> dict[str, Any]:
    """Everything the machine remembers, as `parse_circuit` reads it."""
    return {
        "subject": circuit.subject.value,
        "state": circuit.state.value,
        "epoch": circuit.epoch,
        "recovery_successes": circuit.recovery_successes,
        "failures": circuit.failures,
        "successes": circuit.successes,
        "openings": circuit.openings,
        "cooldown_until": moment(circuit.cooldown_until) if circuit.cooldown_until else None,
        "window": window_document(circuit.window),
        "correlations": correlations_document(circuit.correlations),
    }


def parse_circuit(document: Mapping[str, Any]) -> Circuit:
    until = document["cooldown_until"]
    return Circuit(
        subject=Subject(document["subject"]),
        state=State(document["state"]),
        epoch=document["epoch"],
        recovery_successes=document["recovery_successes"],
        failures=document["failures"],
        successes=document["successes"],
        openings=document["openings"],
        cooldown_until=parse_moment(until, "cooldown_until") if until else None,
        window=parse_window(document["window"]),
        correlations=parse_correlations(document["correlations"]),
    )


def window_document(window: Iterable[Samples]) -> list[list[int]]:
    """`[[Unix second, failures, successes], …]`: samples are kept by whole seconds, so that the window of a
    busy supply stays small."""
    return [
        [int(samples.at.timestamp()), samples.failures, samples.successes] for samples in by_second(window)
    ]


def by_second(window: Iterable[Samples]) -> tuple[Samples, ...]:
    merged: dict[datetime, Samples] = {}
    for samples in window:
        at = samples.at.replace(microsecond=0)
        seen = merged.get(at, Samples(at, 0, 0))
        merged[at] = Samples(at, seen.failures + samples.failures, seen.successes + samples.successes)
    return tuple(merged.values())


def parse_window(document: Iterable[list[int]]) -> tuple[Samples, ...]:
    return tuple(Samples(datetime.fromtimestamp(second, UTC), *counts) for second, *counts in document)


def correlations_document(correlations: Iterable[Correlation]) -> list[list[str]]:
    return [[moment(one.at), one.code, one.supply] for one in correlations]


def parse_correlations(document: Iterable[list[str]]) -> tuple[Correlation, ...]:
    return tuple(Correlation(parse_moment(at, "correlations"), code, supply) for at, code, supply in document)


def moment(at: datetime) -> str:
    """RFC 3339 in UTC, with Z."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_moment(text: Any, where: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise CaseError(f"{where}: {text!r} is not an RFC 3339 time") from error
    if at.tzinfo is None:
        raise CaseError(f"{where}: {text!r} has no time zone")
    return at.astimezone(UTC)


def _word[Word: StrEnum](words: type[Word], value: Any, where: str) -> Word:
    if value not in list(words):
        raise CaseError(f"{where}: {value!r} is none of {', '.join(words)}")
    return words(value)
