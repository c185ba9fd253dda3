"""The scenario format: a JSON file that holds everything one selection depends on, read strictly.

`read_scenarios` takes the text of a file, `parse_scenario` one object; what is wrong is named by its path.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple, NoReturn

from billing.money import MoneyError, micros_of
from billing.pricing import SCENARIO_KEYS, Ratio, parse_price
from catalog.capability import IMAGE_KEYS, VIDEO_KEYS, parse_capability
from catalog.degradation import parse_rule
from catalog.document import DocumentError, Section, items, text
from catalog.hashing import document_hash
from catalog.policy import ORDERS, PRIORITY_MAX, Policy, PolicyError, parse_policy
from catalog.shape import read_shape
from dispatch.routing.types import (
    ADMIN_STATES,
    HEALTH,
    REAL_PERSON,
    TIERS,
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
    default_unknown_limit,
)

DEGRADATION: Final = ("strict", "best_effort")

KEYS: Final = (
    "now",
    "model",
    "policy",
    "request",
    "job",
    "fx",
    "channels",
    "groups",
    "supplies",
    "bindings",
    "refusals",
)
MODEL_KEYS: Final = ("slug", "modality", "profile", "degradation", "emergency_override", "baseline")
POLICY_KEYS: Final = (
    "order", "currency", "min_samples", "success_band", "stable_cost_multiplier_limit",
    "fallback_cost_multiplier_limit", "max_cost", "spill_when_saturated", "probe_every",
)  # fmt: skip
VIDEO_REQUEST_KEYS: Final = (
    "mode", "duration_s", "resolution", "aspect_ratio", "images", "videos", "audios", "audio", "real_person",
    "billing_mode", "degradation", "max_cost",
)  # fmt: skip
IMAGE_REQUEST_KEYS: Final = ("mode", "size", "n", "images", "degradation", "max_cost")
JOB_KEYS: Final = ("tried", "spent", "selection_number", "attempt")
PLACE_KEYS: Final = (
    "state", "health", "recovery_successes", "capacity", "used", "unknown", "unknown_limit", "used_in_epoch",
)  # fmt: skip
CHANNEL_KEYS: Final = (*PLACE_KEYS, "group")
IMAGE_SUPPLY_KEYS: Final = (*PLACE_KEYS, "channel", "samples", "successes", "capability", "price")
VIDEO_SUPPLY_KEYS: Final = (*IMAGE_SUPPLY_KEYS, "real_person")
BINDING_KEYS: Final = ("supply", "tier", "priority", "enabled", "rule")


def read_scenarios(source: str) -> tuple[list[RoutingInput], bool]:
    """The scenarios of a file, and whether it is a list of them. Raises DocumentError."""
    document = _loaded(source)
    if not (isinstance(document, Mapping) and "scenarios" in document):
        return [parse_scenario(document)], False
    listed = Section(document, "", ("scenarios",))
    return [parse_scenario(each, path) for each, path in items(listed.raw("scenarios"), "scenarios")], True


def _loaded(source: str) -> Any:
    """JSON with its decimals as they are written. A key that stands twice would hide the first: refused."""
    try:
        return json.loads(
            source, parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_without_duplicates
        )
    except RecursionError:
        raise DocumentError("", "is nested too deeply") from None
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError("", f"is not JSON: {error}") from error


def _no_number(word: str) -> NoReturn:
    raise DocumentError("", f"{word} is not a number of JSON")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise DocumentError(
            "", f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice in one object"
        )
    return found


def parse_scenario(document: Any, path: str = "") -> RoutingInput:
    """Raises DocumentError, naming the path, for a key that is not known or a value out of range."""
    scenario = Section(document, path, KEYS)
    model = _model(scenario.section("model", MODEL_KEYS))
    policy = scenario.section("policy", POLICY_KEYS)
    request = scenario.section(
        "request", VIDEO_REQUEST_KEYS if model.modality == "video" else IMAGE_REQUEST_KEYS
    )
    groups = {name: (Group(name, each.whole("capacity")), GroupCondition(each.whole("used")))
              for name, each in scenario.named("groups", ("capacity", "used"))}  # fmt: skip
    channels = dict(_channels(scenario, {name: group for name, (group, _) in groups.items()}))
    supplies = dict(
        _supplies(scenario, model.modality, {name: each.channel for name, each in channels.items()})
    )
    return RoutingInput(
        now=_time(scenario, "now"),
        model=model,
        policy=_policy(policy),
        policy_version=_version("policy", _policy_parameters(policy)),
        shape=read_shape(model.modality, request),
        demands=Demands(
            degradation=request.choice("degradation", DEGRADATION, None),
            max_cost_micros=_micros(request, "max_cost", None),
        ),
        job=_job(scenario),
        candidates=_candidates(scenario, {name: each.supply for name, each in supplies.items()}),
        groups={name: now for name, (_, now) in groups.items()},
        channels={name: each.now for name, each in channels.items()},
        supplies={name: each.now for name, each in supplies.items()},
        statistics={name: each.statistics for name, each in supplies.items()},
        refusals=dict(_refusals(scenario, supplies)),
        rates=dict(_rates(scenario)),
    )


def _model(section: Section) -> Model:
    return Model(
        slug=section.text("slug"),
        modality=section.choice("modality", ("video", "image")),
        profile=section.text("profile"),
        degradation=section.choice("degradation", DEGRADATION, "strict"),
        emergency_override=section.flag("emergency_override", False),
        baseline_micros=_micros(section, "baseline", None),
    )


def _policy(section: Section) -> Policy:
    try:
        return parse_policy(_policy_parameters(section))
    except PolicyError as error:
        name, _, message = str(error).partition(": ")  # a PolicyError begins with the parameter's name
        raise DocumentError(section.at(name), message) from error


def _policy_parameters(section: Section) -> dict[str, Any]:
    """As a stored policy has them: `max_cost` is an amount here, and `min_samples` 0 counts as 1."""
    section.choice("order", ORDERS)
    parameters = {key: _plain(value) for key, value in section.values.items() if value is not None}
    if section.has("max_cost"):
        del parameters["max_cost"]
        parameters["max_cost_micros"] = _micros(section, "max_cost", None)
    if section.has("min_samples"):
        parameters["min_samples"] = max(1, section.whole("min_samples"))
    if section.has("probe_every"):
        parameters["probe_every"] = section.whole("probe_every")
    return parameters


def documents_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """What stands for the immutable versions in a scenario that parse_scenario takes, by id, for a replay."""
    documents = {"policy": _policy_parameters(Section(document["policy"], "policy", POLICY_KEYS))}
    for name, supply in document["supplies"].items():
        documents[f"capability:{name}"] = _plain(supply["capability"])
        if supply.get("price") is not None:
            documents[f"price:{name}"] = _plain(supply["price"])
    return documents


def _version(name: str, document: Any) -> Version:
    return Version(name, document_hash(_plain(document)))


def _plain(value: Any) -> Any:
    """Decimals as JSON's own numbers again."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _job(scenario: Section) -> Job:
    if not scenario.has("job"):
        return Job()
    section = scenario.section("job", JOB_KEYS)
    return Job(
        tried=frozenset(section.texts("tried", ())),
        spent_micros=_micros(section, "spent", 0),
        selection_number=section.whole("selection_number", 1),
        attempt=section.whole("attempt", 1, least=1, most=2),
    )


class _Channel(NamedTuple):
    channel: Channel
    now: Condition


class _Supply(NamedTuple):
    supply: Supply
    now: Condition
    statistics: Statistics


def _channels(scenario: Section, groups: Mapping[str, Group]) -> Iterator[tuple[str, _Channel]]:
    for name, section in scenario.named("channels", CHANNEL_KEYS):
        capacity = section.whole("capacity")
        group = section.choice("group", groups, None)
        channel = Channel(
            id=name,
            capacity=capacity,
            unknown_limit=section.whole("unknown_limit", default_unknown_limit(capacity)),
            state=section.choice("state", ADMIN_STATES),
            group=groups[group] if group is not None else None,
        )
        yield name, _Channel(channel, _condition(section))


def _condition(section: Section) -> Condition:
    health = section.choice("health", HEALTH)
    if health == "recovering":
        section.raw("recovery_successes")
    return Condition(
        health=health,
        recovery_successes=section.whole("recovery_successes", 0, least=2, most=4),
        used=section.whole("used"),
        unknown=section.whole("unknown", 0),
        used_in_epoch=section.whole("used_in_epoch", None),
    )


def _supplies(
    scenario: Section, modality: str, channels: Mapping[str, Channel]
) -> Iterator[tuple[str, _Supply]]:
    for name, section in scenario.named(
        "supplies", VIDEO_SUPPLY_KEYS if modality == "video" else IMAGE_SUPPLY_KEYS
    ):
        capacity = section.whole("capacity")
        capability, price = section.raw("capability"), section.raw("price", None)
        known = VIDEO_KEYS if modality == "video" else IMAGE_KEYS
        supply = Supply(
            id=name,
            channel=channels[section.choice("channel", channels)],
            capacity=capacity,
            unknown_limit=section.whole("unknown_limit", default_unknown_limit(capacity)),
            capability=parse_capability(modality, capability, section.at("capability"), known),
            capability_version=_version(f"capability:{name}", capability),
            price=price and parse_price(price, modality, section.at("price"), SCENARIO_KEYS),
            price_version=price and _version(f"price:{name}", price),
            state=section.choice("state", ADMIN_STATES),
            real_person=section.choice("real_person", REAL_PERSON, "allowed"),
        )
        yield name, _Supply(supply, _condition(section), _statistics(section))


def _statistics(section: Section) -> Statistics:
    samples = section.whole("samples")
    return Statistics(samples, section.whole("successes", most=samples))


def _candidates(scenario: Section, supplies: Mapping[str, Supply]) -> tuple[Candidate, ...]:
    sections = list(scenario.sections("bindings", BINDING_KEYS))
    bound = [(section.choice("supply", supplies), section.choice("tier", TIERS)) for section in sections]
    keys = candidate_keys(bound)
    if len(keys) < len(bound):
        twice = next(place for place, pair in enumerate(bound) if pair in bound[:place])
        raise DocumentError(
            sections[twice].path, f"{bound[twice][0]} is already bound in tier {bound[twice][1]}"
        )
    return tuple(
        Candidate(
            key=keys[supply, tier],
            supply=supplies[supply],
            tier=tier,
            priority=section.whole("priority", 0, most=PRIORITY_MAX),
            enabled=section.flag("enabled", True),
            rule=_rule(section, tier),
        )
        for section, (supply, tier) in zip(sections, bound, strict=True)
    )


def _rule(section: Section, tier: str) -> Any:
    """A rule is read wherever it stands, so that a mistake is told, and kept where it is used."""
    if tier == "degraded" or section.has("rule"):
        rule = parse_rule(section.raw("rule"), section.at("rule"))
        return rule if tier == "degraded" else None
    return None


def _refusals(scenario: Section, supplies: Mapping[str, Any]) -> Iterator[tuple[str, Refusal]]:
    seen: set[str] = set()
    for section in scenario.sections("refusals", ("supply", "state", "next_probe_at")):
        supply = section.choice("supply", supplies)
        if supply in seen:
            raise DocumentError(section.at("supply"), f"{supply} has a refusal record already")
        seen.add(supply)
        state = section.choice("state", ("cooldown", "frozen"))
        wanted = state == "cooldown" or section.has("next_probe_at")
        yield supply, Refusal(state, _time(section, "next_probe_at") if wanted else None)


def _rates(scenario: Section) -> Iterator[tuple[str, Ratio]]:
    section = scenario.values.get("fx")
    if section is None:
        return
    for code, _ in scenario.entries("fx"):
        rate = Section(section, scenario.at("fx"), section).amount(code, None)
        if rate is not None:
            yield code, _above_zero(rate, f"{scenario.at('fx')}.{code}").as_integer_ratio()


def _above_zero(rate: Fraction, path: str) -> Fraction:
    if rate == 0:
        raise DocumentError(path, "must be above 0")
    return rate


def _micros(section: Section, key: str, default: int | None) -> Any:
    amount = section.amount(key, None)
    if amount is None:
        return default
    try:
        return micros_of(amount)
    except MoneyError as error:
        raise DocumentError(section.at(key), "is finer than a millionth") from error


def _time(section: Section, key: str) -> datetime:
    written = text(section.raw(key), section.at(key))
    try:
        moment = datetime.fromisoformat(written)
    except ValueError as error:
        raise DocumentError(
            section.at(key), f"{written!r} is not a time such as 2026-06-01T12:00:00Z"
        ) from error
    if moment.tzinfo is None:
        raise DocumentError(section.at(key), f"{written!r} has no time zone: add Z")
    return moment
