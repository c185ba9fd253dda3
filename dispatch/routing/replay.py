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
from dispatch.routing.snapshot import HASH_LENGTH, SCHEMA, bindings_by_key, canonical, snapshot
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
    default_unknown_limit,
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
    policy_version, parameters = _load(recorded["policy"]["version"], documents)
    model, request = _read(Model, recorded["model"]), recorded["request"]
    rates = recorded["rates"].items()
    return RoutingInput(
        now=datetime.fromisoformat(recorded["now"]),
        model=model,
        policy=parse_policy(parameters),
        policy_version=policy_version,
        shape=_shape(model, request["shape"]),
        candidates=_candidates(recorded, dict(_supplies(recorded, model, documents))),
        channels=_read_all(Condition, recorded["channels"]),
        supplies=_read_all(Condition, recorded["supplies"]),
        groups=_read_all(GroupCondition, recorded["groups"]),
        statistics=_read_all(Statistics, recorded["supplies"]),
        demands=_read(Demands, request),
        job=_read(Job, recorded["job"]),
        refusals=_read_all(Refusal, recorded["refusals"]),
        rates={code: tuple(told["ratio"]) for code, told in rates},
        rate_versions={code: told["version"] for code, told in rates if told["version"]},
        compile_refusals=_compile_refusals(recorded),
        request_hash=request["hash"],
    )


def _load(named: Sequence[str], documents: Told) -> tuple[Version, Any]:
    """A version as the snapshot names it, and its document, checked against the hash."""
    version = Version(*named)
    if version.id not in documents:
        raise ReplayError(f"{version.id}: its document was not given")
    document = documents[version.id]
    if document_hash(document)[:HASH_LENGTH] != version.hash:
        raise ReplayError(f"{version.id}: its document is not the one that was routed by")
    return version, document


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


def _supplies(recorded: Told, model: Model, documents: Told) -> Iterator[tuple[str, Supply]]:
    channels = _channels(recorded)
    for key, told in recorded["supplies"].items():
        capability_version, capability = _load(told["capability"], documents)
        price_version, price = _load(told["price"], documents) if told["price"] else (None, None)
        supply = Supply(
            id=key,
            channel=channels[told["channel"]],
            capacity=told["capacity"],
            unknown_limit=_unknown_limit(told),
            capability=parse_capability(model.modality, capability),
            capability_version=capability_version,
            price=price and parse_price(price, model.modality),
            price_version=price_version,
            state=told.get("state", "enabled"),
            real_person=told.get("real_person", "allowed"),
        )
        yield key, supply


def _unknown_limit(told: Told) -> int:
    limit: int = told.get("unknown_limit", default_unknown_limit(told["capacity"]))
    return limit


def _channels(recorded: Told) -> dict[str, Channel]:
    groups = {key: Group(key, told["capacity"]) for key, told in recorded["groups"].items()}
    return {
        key: Channel(
            id=key,
            capacity=told["capacity"],
            unknown_limit=_unknown_limit(told),
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
        for key, told in bindings_by_key(recorded).items()
    )


def _compile_refusals(recorded: Told) -> dict[str, str]:
    bindings = bindings_by_key(recorded).items()
    return {key: told["compile_refusal"] for key, told in bindings if "compile_refusal" in told}


def _differences(recorded: Any, again: Any, path: str) -> Iterator[str]:
    """The paths at which two documents differ."""
    if isinstance(recorded, Mapping) and isinstance(again, Mapping):
        for key in sorted({*recorded, *again}):
            yield from _differences(recorded.get(key), again.get(key), f"{path}.{key}" if path else key)
    elif recorded != again:
        yield f"{path}: recorded {recorded!r}, now {again!r}"
