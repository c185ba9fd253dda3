"""A stored snapshot, routed again: with the documents of its versions it gives the same bytes, on any day."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from fractions import Fraction
from typing import Any

from billing.pricing import parse_price
from catalog.capability import parse_capability
from catalog.degradation import parse_rule
from catalog.hashing import document_hash
from catalog.policy import parse_policy
from catalog.shape import ImageShape, Shape, VideoShape
from dispatch.routing.router import route
from dispatch.routing.snapshot import SCHEMA, canonical, snapshot
from dispatch.routing.types import (
    Candidate,
    Channel,
    Condition,
    Demands,
    Group,
    GroupCondition,
    Job,
    Model,
    Refusal,
    RoutingInput,
    Statistics,
    Supply,
    Version,
    candidate_keys,
)

type Told = Mapping[str, Any]


class ReplayError(ValueError):
    """The snapshot can't be routed again: another schema, or a version that is missing or was changed."""


def replay(recorded: Told, documents: Told) -> list[str]:
    """Where the snapshot that the same inputs give now differs from the recorded one; empty: nowhere.

    `documents` holds the JSON of each version that the snapshot names, by id. Raises ReplayError.
    """
    inputs = inputs_from_snapshot(recorded, documents)
    again = snapshot(inputs, route(inputs))
    return [] if canonical(again) == canonical(recorded) else list(_differences(recorded, again, ""))


def inputs_from_snapshot(recorded: Told, documents: Told) -> RoutingInput:
    """Raises ReplayError."""
    if recorded.get("schema") != SCHEMA:
        raise ReplayError(
            f"schema {recorded.get('schema')} is not {SCHEMA}, the one that this version replays"
        )
    loaded = _Loaded(recorded["versions"], documents)
    model, request = _read(Model, recorded["model"]), recorded["request"]
    rates = recorded["rates"].items()
    return RoutingInput(
        now=datetime.fromisoformat(recorded["now"]),
        model=model,
        policy=parse_policy(loaded.document(recorded["policy"]["id"])),
        policy_version=loaded.version(recorded["policy"]["id"]),
        shape=_shape(model, request["shape"]),
        candidates=_candidates(recorded, dict(_supplies(recorded, model, loaded))),
        channels=_read_all(Condition, recorded["channels"]),
        supplies=_read_all(Condition, recorded["supplies"]),
        groups=_read_all(GroupCondition, recorded["groups"]),
        statistics=_read_all(Statistics, recorded["supplies"]),
        demands=_read(Demands, request),
        job=_read(Job, recorded["job"]),
        refusals=_read_all(Refusal, recorded["refusals"]),
        rates={code: tuple(told["ratio"]) for code, told in rates},
        rate_versions={code: told["version"] for code, told in rates if told["version"]},
        compile_refusals=_compile_refusals(recorded["bindings"]),
        request_hash=request["hash"],
    )


class _Loaded:
    """The documents of a snapshot's versions, each checked against its hash when it is used."""

    def __init__(self, hashes: Told, documents: Told) -> None:
        self._hashes, self._documents = hashes, documents

    def version(self, id: str) -> Version:
        return Version(id, self._hashes[id])

    def document(self, id: str) -> Any:
        if id not in self._documents:
            raise ReplayError(f"{id}: its document was not given")
        if document_hash(self._documents[id]) != self._hashes[id]:
            raise ReplayError(f"{id}: its document is not the one that was routed by")
        return self._documents[id]


def _read[Kind](kind: type[Kind], told: Told) -> Kind:
    """A value from what was told of it; the keys of other values in the same object are passed by."""
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: _value(name, value) for name, value in told.items() if name in names})


def _read_all[Kind](kind: type[Kind], told: Told) -> dict[str, Kind]:
    return {key: _read(kind, each) for key, each in told.items()}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "not_before": datetime.fromisoformat,
    "next_probe_at": datetime.fromisoformat,
    "tried": frozenset,
    "regions": frozenset,
    "compliance": frozenset,
    "duration_s": lambda told: Fraction(told) if isinstance(told, str) else told,
}


def _value(name: str, told: Any) -> Any:
    return _READERS[name](told) if name in _READERS else told


def _shape(model: Model, told: Told) -> Shape:
    return _read(VideoShape, told) if model.modality == "video" else _read(ImageShape, told)


def _supplies(recorded: Told, model: Model, loaded: _Loaded) -> Iterator[tuple[str, Supply]]:
    channels = _channels(recorded)
    for key, told in recorded["supplies"].items():
        yield (
            key,
            Supply(
                id=key,
                channel=channels[told["channel"]],
                capacity=told["capacity"],
                unknown_limit=told["unknown_limit"],
                capability=parse_capability(model.modality, loaded.document(told["capability"])),
                capability_version=loaded.version(told["capability"]),
                price=told["price"] and parse_price(loaded.document(told["price"]), model.modality),
                price_version=told["price"] and loaded.version(told["price"]),
                state=told.get("state", "enabled"),
                real_person=told.get("real_person", "allowed"),
            ),
        )


def _channels(recorded: Told) -> dict[str, Channel]:
    groups = {key: Group(key, told["capacity"]) for key, told in recorded["groups"].items()}
    return {
        key: Channel(
            id=key,
            capacity=told["capacity"],
            unknown_limit=told["unknown_limit"],
            state=told.get("state", "enabled"),
            group=groups.get(told.get("group")),
            region=told.get("region", ""),
        )
        for key, told in recorded["channels"].items()
    }


def _candidates(recorded: Told, supplies: Mapping[str, Supply]) -> tuple[Candidate, ...]:
    rules = [parse_rule(told) for told in recorded["rules"]]
    return tuple(
        Candidate(
            key=key,
            supply=supplies[told["supply"]],
            tier=told["tier"],
            priority=told.get("priority", 0),
            enabled=told.get("enabled", True),
            rule=rules[told["rule"]] if "rule" in told else None,
        )
        for key, told in _by_key(recorded["bindings"])
    )


def _compile_refusals(bindings: Sequence[Told]) -> dict[str, str]:
    return {key: told["compile_refusal"] for key, told in _by_key(bindings) if "compile_refusal" in told}


def _by_key(bindings: Sequence[Told]) -> Iterator[tuple[str, Told]]:
    keys = candidate_keys((told["supply"], told["tier"]) for told in bindings)
    return ((keys[told["supply"], told["tier"]], told) for told in bindings)


def _differences(recorded: Any, again: Any, path: str) -> Iterator[str]:
    """The paths at which two documents differ."""
    if isinstance(recorded, Mapping) and isinstance(again, Mapping):
        for key in sorted({*recorded, *again}):
            yield from _differences(recorded.get(key), again.get(key), f"{path}.{key}" if path else key)
    elif recorded != again:
        yield f"{path}: recorded {recorded!r}, now {again!r}"
