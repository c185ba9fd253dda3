"""The catalogue document: checked by its published schema, then by what one entry says of another; pure.

A document is whole in itself: whatever it refers to is in it. See schema.json for every key."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
from jsonschema.exceptions import ValidationError

from billing.money import micros_of, written
from billing.pricing import parse_price
from catalog.capability import contradictions, parse_capability
from catalog.currency import is_currency
from catalog.document import DocumentError
from catalog.facts import BindingFacts, in_order, policy_parameters
from catalog.policy import PolicyError
from dispatch.catalogue.source import InvalidCatalogue, Source, inside, read_source

type Entry = dict[str, Any]
type Complaint = tuple[str, str]  # path and message

# What an adapter says against a channel's config, by path inside it; None: no such provider.
type CheckConfig = Callable[[str, Mapping[str, Any]], list[Complaint] | None]


@dataclass(frozen=True, slots=True)
class Document:
    """`entries` are the sections with every default filled in."""

    entries: Entry
    source: Source


@cache
def schema() -> Entry:
    loaded: Entry = json.loads((Path(__file__).parent / "schema.json").read_text())
    return loaded


def read_document(text: str, check_config: CheckConfig) -> Document:
    """Raises InvalidCatalogue with every problem that can be found at once."""
    source = read_source(text)
    problems = [source.problem(*complaint) for complaint in _against_schema(source.value)]
    if problems:
        raise InvalidCatalogue(problems)
    entries = with_defaults(source.value, schema())
    problems = [source.problem(*complaint) for complaint in _complaints(entries, check_config)]
    if problems:
        raise InvalidCatalogue(problems)
    return Document(_normalized(entries), source)


def _against_schema(value: Any) -> Iterator[Complaint]:
    validator = jsonschema.Draft202012Validator(schema())
    for error in validator.iter_errors(value if value is not None else {}):
        yield from _told(error)


def _told(error: ValidationError) -> Iterator[Complaint]:
    path, shape, found = "", cast(Entry, error.schema), cast(Any, error.instance)
    for step in error.absolute_path:
        path = inside(path, step)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = ", ".join(sorted(shape["properties"]))
        for key in found:
            if key not in shape["properties"]:
                yield inside(path, key), f"no such key; known are {known}"
    elif error.validator == "required":
        yield path or "document", _missing_keys(error)
    elif "propertyNames" in error.absolute_schema_path:
        yield inside(path, found), _unexpected(error)
    elif error.validator == "anyOf":
        yield from _told(_closest(error))
    else:
        yield path or "document", _unexpected(error)


def _missing_keys(error: ValidationError) -> str:
    """jsonschema reports one key an error, and names it in its message only."""
    return f"{error.message.split(chr(39))[1]} is missing"


def _unexpected(error: ValidationError) -> str:
    if (
        error.validator == "type"
        and error.validator_value == "string"
        and isinstance(error.instance, int | float)
    ):
        return f'is a number; write it in quotes, "{error.instance}", so that it stays what is written'
    expected = cast(Entry, error.schema).get("expected")
    return f"{error.instance!r} is not {expected}" if expected else error.message


def _closest(error: ValidationError) -> ValidationError:
    """Of the alternatives, what the one of the right type complains about."""
    fitting = [each for each in error.context or () if each.validator != "type"]
    return fitting[0] if fitting else (error.context or [error])[0]


def with_defaults(value: Any, shape: Mapping[str, Any]) -> Any:
    """A valid value with the schema's defaults where it is silent, keys in the schema's order."""
    shape = _resolved(shape)
    if isinstance(value, list):
        return [with_defaults(item, shape.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    parts = _parts(value, shape)
    given = {name: with_defaults(value[name], part) for name, part in parts.items() if name in value}
    filled = {name: _default(part) for name, part in parts.items() if name not in value}
    return {name: (given | filled)[name] for name in parts if filled.get(name, given) is not _NO_DEFAULT}


def without_defaults(value: Any, shape: Mapping[str, Any]) -> Any:
    """The inverse: what goes without saying is left out."""
    shape = _resolved(shape)
    if isinstance(value, list):
        return [without_defaults(item, shape.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {name: part for name, part in _parts(value, shape).items() if name in value}
    return {
        name: without_defaults(value[name], part)
        for name, part in parts.items()
        if value[name] != _default(part)
    }


_NO_DEFAULT = object()


def _resolved(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference leads to, with what stands beside the reference."""
    while "$ref" in shape:
        beside = {key: part for key, part in shape.items() if key != "$ref"}
        shape = schema()["$defs"][shape["$ref"].rpartition("/")[2]] | beside
    return shape


def _parts(value: Entry, shape: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schema of each key of the object: those it declares, then those that the value has besides."""
    properties, others = shape.get("properties", {}), shape.get("additionalProperties")
    free = others if isinstance(others, Mapping) else {}
    return {**properties, **{name: free for name in value if name not in properties}}


def _default(shape: Mapping[str, Any]) -> Any:
    return _resolved(shape).get("default", _NO_DEFAULT)


def _complaints(entries: Entry, check_config: CheckConfig) -> Iterator[Complaint]:
    yield from _channel_complaints(entries, check_config)
    yield from _rate_complaints(entries)
    for slug, supply in entries["supplies"].items():
        yield from _supply_complaints(f"supplies.{slug}", supply, entries)
    for slug, parameters in entries["policies"].items():
        yield from _policy_complaints(f"policies.{slug}", parameters)
    for slug, rule in entries["degradation_rules"].items():
        if rule["published"] and not rule["verified"]:
            yield f"degradation_rules.{slug}.published", "only a verified rule can be published"
    for slug, model in entries["public_models"].items():
        yield from _model_complaints(f"public_models.{slug}", model, entries)


def _channel_complaints(entries: Entry, check_config: CheckConfig) -> Iterator[Complaint]:
    for slug, channel in entries["channels"].items():
        path = f"channels.{slug}"
        found = check_config(channel["provider"], channel["config"])
        if found is None:
            yield f"{path}.provider", f"no adapter is called {channel['provider']!r}"
        if channel["credential_expires"] and not _is_date(channel["credential_expires"]):
            yield f"{path}.credential_expires", f"{channel['credential_expires']} is not a date"
        for inner, message in found or ():
            yield inside(f"{path}.config", inner) if inner else f"{path}.config", message


def _rate_complaints(entries: Entry) -> Iterator[Complaint]:
    pairs = set()
    for index, rate in enumerate(entries["currency_rates"]):
        path = f"currency_rates[{index}]"
        if rate["from"] == rate["to"]:
            yield f"{path}.to", "is the same currency"
        if Decimal(rate["rate"]) == 0:
            yield f"{path}.rate", "must be above 0"
        if (rate["from"], rate["to"]) in pairs:
            yield path, f"{rate['from']} to {rate['to']} is there already"
        pairs.add((rate["from"], rate["to"]))


def _supply_complaints(path: str, supply: Entry, entries: Entry) -> Iterator[Complaint]:
    if supply["channel"] not in entries["channels"]:
        yield f"{path}.channel", _missing("channel", supply["channel"])
    if supply["modality"] == "video" and not supply["real_person_policy"]:
        yield path, "real_person_policy is missing: allowed, restricted or denied"
    if supply["modality"] == "image" and supply["real_person_policy"]:
        yield f"{path}.real_person_policy", "is for video only; leave it out"
    if supply["sunset"] and not _is_date(supply["sunset"]):
        yield f"{path}.sunset", f"{supply['sunset']} is not a date"
    if supply["capability"]:
        document = supply["capability"]["document"]
        yield from _capability_complaints(f"{path}.capability.document", supply["modality"], document)
    if supply["price"]:
        yield from _price_complaints(f"{path}.price", supply["price"], supply["modality"])


def _capability_complaints(path: str, modality: str, document: Entry) -> Iterator[Complaint]:
    try:
        capability = parse_capability(modality, document, path)
    except DocumentError as error:
        yield _of(error)
        return
    for contradiction in contradictions(capability):
        yield f"{path}.constraints", f"no request can meet it: {contradiction}"


def _price_complaints(path: str, price: Entry, modality: str, stored: bool = True) -> Iterator[Complaint]:
    if stored and price.get("mode") == "per_token":
        # Kept for the books, refused when a model with it is published.
        if not is_currency(price.get("currency")):
            yield f"{path}.currency", "must be a three-letter code such as USD"
        return
    try:
        parse_price(price, modality, path)
    except DocumentError as error:
        yield _of(error)


def _policy_complaints(path: str, parameters: Entry) -> Iterator[Complaint]:
    try:
        policy_parameters(parameters)
    except PolicyError as error:
        name, _, message = str(error).partition(": ")
        yield f"{path}.{name}", message


def _model_complaints(path: str, model: Entry, entries: Entry) -> Iterator[Complaint]:
    if model["policy"] not in entries["policies"]:
        yield f"{path}.policy", _missing("policy", model["policy"])
    for index, group in enumerate(model["allowed_groups"]):
        if group not in entries["customer_groups"]:
            yield f"{path}.allowed_groups[{index}]", _missing("customer group", group)
    yield from _capability_complaints(f"{path}.parameters", model["modality"], model["parameters"])
    for profile, price in (model["price"] or {}).items():
        yield from _price_complaints(f"{path}.price.{profile}", price, model["modality"], stored=False)
    seen = set()
    for index, binding in enumerate(model["bindings"]):
        yield from _binding_complaints(f"{path}.bindings[{index}]", binding, model, entries)
        if (binding["supply"], binding["tier"]) in seen:
            yield f"{path}.bindings[{index}]", f"{binding['supply']} is bound as {binding['tier']} already"
        seen.add((binding["supply"], binding["tier"]))


def _binding_complaints(path: str, binding: Entry, model: Entry, entries: Entry) -> Iterator[Complaint]:
    supply = entries["supplies"].get(binding["supply"])
    if supply is None:
        yield f"{path}.supply", _missing("supply", binding["supply"])
    elif supply["modality"] != model["modality"]:
        yield (
            f"{path}.supply",
            f"makes {supply['modality']}, and the model is of modality {model['modality']}",
        )
    if binding["tier"] == "degraded" and not binding["rule"]:
        yield path, "rule is missing: tier degraded needs one"
    if binding["tier"] != "degraded" and binding["rule"]:
        yield f"{path}.rule", "is for tier degraded only"
    if binding["rule"] and binding["rule"] not in entries["degradation_rules"]:
        yield f"{path}.rule", _missing("degradation rule", binding["rule"])


def _missing(kind: str, name: str) -> str:
    return f"this document has no {kind} {name!r}"


def _of(error: DocumentError) -> Complaint:
    return error.path, str(error).removeprefix(f"{error.path}: ")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _normalized(entries: Entry) -> Entry:
    """Equal documents for what means the same, so that a difference is one."""
    policies = {slug: policy_parameters(parameters) for slug, parameters in entries["policies"].items()}
    models = {slug: _normalized_model(model) for slug, model in entries["public_models"].items()}
    rates = [{**rate, "rate": shortest(Decimal(rate["rate"]))} for rate in entries["currency_rates"]]
    return {**entries, "policies": policies, "public_models": models, "currency_rates": rates}


def _normalized_model(model: Entry) -> Entry:
    baseline = model["baseline"]
    bindings = in_order(BindingFacts(**binding) for binding in model["bindings"])
    return {
        **model,
        "baseline": written(micros_of(baseline)) if baseline else None,
        "bindings": [asdict(binding) for binding in bindings],
    }


def shortest(number: Decimal) -> str:
    return format(number.normalize(), "f")
