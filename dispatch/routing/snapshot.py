"""The evidence of one selection as a JSON document: its facts, the decision, and why.

It holds mutable facts whole, and immutable versions by id and hash; no prompt, no URL, no secret.
`dispatch.routing.replay` is the way back.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from fractions import Fraction
from functools import cache
from typing import Any, Final

from catalog.capability import lacking
from catalog.degradation import Rule, rule_document
from dispatch.routing.ordering import NO_SAMPLES
from dispatch.routing.reasons import REASONS
from dispatch.routing.types import (
    Channel,
    Decision,
    Finding,
    RoutingInput,
    Shadow,
    Supply,
    Version,
    candidate_keys,
    default_unknown_limit,
)

SCHEMA: Final = 1
HASH_LENGTH: Final = 32  # hexadecimal digits
DETAILS_LENGTH: Final = 200  # characters; twenty candidates stay under 16 KiB


def canonical(document: Mapping[str, Any]) -> bytes:
    """The one form in which two snapshots are compared."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def snapshot(inputs: RoutingInput, decision: Decision) -> dict[str, Any]:
    """JSON-ready; what has its default value is left out."""
    findings = sorted(decision.findings, key=lambda it: it.candidate.key)
    supplies = {it.candidate.supply.id: it.candidate.supply for it in findings}
    channels = {supply.channel.id: supply.channel for supply in supplies.values()}
    groups = {channel.group.id: channel.group for channel in channels.values() if channel.group}
    rules = list(dict.fromkeys(it.candidate.rule for it in findings if it.candidate.rule))
    return {
        "schema": SCHEMA,
        "now": inputs.now.isoformat(),
        "model": _told(inputs.model),
        "policy": {
            "version": _version(inputs.policy_version),
            "order": inputs.policy.order,
            "currency": inputs.policy.currency,
        },
        "request": {"hash": inputs.request_hash, "shape": _told(inputs.shape), **_told(inputs.demands)},
        "job": _told(inputs.job),
        "rates": _rates(inputs, supplies.values()),
        "groups": {
            key: {"capacity": group.capacity, **_told(inputs.groups[key])} for key, group in groups.items()
        },
        "channels": {key: _channel(channel, inputs) for key, channel in channels.items()},
        "supplies": {key: _supply(supply, inputs) for key, supply in supplies.items()},
        "rules": [rule_document(rule) for rule in rules],
        "bindings": [_binding(it, rules, inputs) for it in findings],
        "refusals": {key: _told(inputs.refusals[key]) for key in supplies if key in inputs.refusals},
        "decision": _decision(inputs, decision),
        "evidence": _evidence(decision),
    }


def bindings_by_key(recorded: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What a snapshot tells of each binding, by the key of its candidate."""
    keys = candidate_keys((told["supply"], told["tier"]) for told in recorded["bindings"])
    return {keys[told["supply"], told["tier"]]: told for told in recorded["bindings"]}


def _told(value: Any) -> dict[str, Any]:
    """The fields of a value that differ from their defaults."""
    told = {}
    for name, default in _defaults(value.__class__):
        current = getattr(value, name)
        if current != default:
            write = _WRITERS.get(type(current))
            told[name] = current if write is None else write(current)
    return told


# What JSON has no form for; replay reads it back by the field's name.
_WRITERS: Final[Mapping[type, Callable[[Any], Any]]] = {
    datetime: datetime.isoformat,
    frozenset: sorted,
    set: sorted,
    Fraction: str,
}


@cache
def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((each.name, each.default) for each in fields(kind))


def _rates(inputs: RoutingInput, supplies: Iterable[Supply]) -> dict[str, Any]:
    """Of the currencies that a candidate charges in."""
    codes = sorted({supply.price.currency for supply in supplies if supply.price})
    return {
        code: {"ratio": list(inputs.rates[code]), "version": inputs.rate_versions.get(code)}
        for code in codes
        if code in inputs.rates
    }


def _channel(channel: Channel, inputs: RoutingInput) -> dict[str, Any]:
    told = _place(channel) | _told(inputs.channels[channel.id])
    if channel.region:
        told["region"] = channel.region
    return told | ({"group": channel.group.id} if channel.group else {})


def _supply(supply: Supply, inputs: RoutingInput) -> dict[str, Any]:
    told = _place(supply) | {
        "channel": supply.channel.id,
        "capability": _version(supply.capability_version),
        "price": supply.price_version and _version(supply.price_version),
    }
    if inputs.model.modality == "video" and supply.real_person != "allowed":
        told["real_person"] = supply.real_person
    statistics = inputs.statistics.get(supply.id, NO_SAMPLES)
    return told | _told(inputs.supplies[supply.id]) | _told(statistics)


def _place(place: Channel | Supply) -> dict[str, Any]:
    told: dict[str, Any] = {"capacity": place.capacity}
    if place.unknown_limit != default_unknown_limit(place.capacity):
        told["unknown_limit"] = place.unknown_limit
    return told if place.state == "enabled" else told | {"state": place.state}


def _binding(finding: Finding, rules: Sequence[Rule], inputs: RoutingInput) -> dict[str, Any]:
    """A rule by its place in `rules`: bindings mostly share one."""
    candidate = finding.candidate
    told: dict[str, Any] = {"supply": candidate.supply.id, "tier": candidate.tier}
    if candidate.priority:
        told["priority"] = candidate.priority
    if not candidate.enabled:
        told["enabled"] = False
    if candidate.rule is not None:
        told["rule"] = rules.index(candidate.rule)
    if refusal := _compile_refusal(finding, inputs):
        told["compile_refusal"] = refusal[:DETAILS_LENGTH]
    return told


def _compile_refusal(finding: Finding, inputs: RoutingInput) -> str | None:
    """Asked for again only where the decision has asked: the answer may have to be computed."""
    if finding.reason not in ("capability_missing", "already_tried"):
        return None
    if lacking(finding.candidate.supply.capability, finding.shape):
        return None
    return inputs.compile_refusals.get(finding.candidate.key)


def _decision(inputs: RoutingInput, decision: Decision) -> dict[str, Any]:
    """As the decision tells itself; but of an image, not even an empty field for real persons."""
    told = decision.as_json()
    if inputs.model.modality == "image" and decision.layer is not None:
        told["layer"] = {"tier": decision.layer.tier}
    return told


def _version(version: Version) -> list[str]:
    """Half of the hash: 128 bits tell any two documents apart."""
    return [version.id, version.hash[:HASH_LENGTH]]


def _evidence(decision: Decision) -> dict[str, Any]:
    findings = {finding.candidate.key: _finding(finding) for finding in decision.findings}
    evidence = {"limits": asdict(decision.limits), "findings": findings}
    return evidence | ({"shadow": _shadow(decision.shadow)} if decision.shadow else {})


def _shadow(shadow: Shadow) -> dict[str, Any]:
    """Keys, best first; each with its score where the order has scores."""
    if shadow.scores is None:
        return {"name": shadow.name, "order": list(shadow.order)}
    return {"name": shadow.name, "order": [[key, shadow.scores[key]] for key in shadow.order]}


def _finding(finding: Finding) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if finding.reason is not None:
        told["step"] = REASONS[finding.reason].step
    if finding.details:
        told["details"] = finding.details[:DETAILS_LENGTH]
    for name in ("health", "position", "lost_by"):
        if (value := getattr(finding, name)) is not None:
            told[name] = value
    return told
