"""From rows to what the production gates look at; reads everything inside the publishing transaction."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from billing.models import CostRuleVersion
from billing.pricing import Price, parse_price
from billing.repository import prices_in_force
from catalog.capability import Capability, contradictions, parse_capability
from catalog.document import DocumentError
from catalog.models import PublicModel, Supply
from catalog.policy import Policy, PolicyError
from catalog.providers.registry import adapter_for
from catalog.providers.types import CompileError, SupplyTarget
from catalog.repository import rule_of
from catalog.shape import shape_of
from dispatch.errors import InvalidRequest
from dispatch.gates import BoundSupply, Evidence, Example
from dispatch.live_catalogue import rates_to
from dispatch.rehearsal import rehearse
from dispatch.requests import defaults_of, normalized
from health.snapshot import health_snapshot

type Request = dict[str, Any]


def gather(model: PublicModel, now: datetime) -> Evidence:
    """`model` as it is stored, whether published or not."""
    policy, policy_problem = _policy(model)
    examples = examples_of(model)
    requests = [(example.name, request) for example, request in examples if request is not None]
    replayed, replay_problems = rehearse(model, now)
    bindings = tuple(_bound(model, requests, now))
    return Evidence(
        modality=model.modality,
        disclosure=model.disclosure,
        policy=policy,
        policy_problem=policy_problem,
        bindings=bindings,
        examples=tuple(example for example, _ in examples),
        rates=rates_to(policy.currency, now)[0] if policy else {},
        replayed=replayed,
        replay_problems=replay_problems,
        today=now.date(),
        unsold=_unsold(model, bindings),
    )


def _unsold(model: PublicModel, bindings: Iterable[BoundSupply]) -> tuple[str, ...]:
    if model.price is None:
        return ()
    delivered = {binding.rule.to_profile for binding in bindings if binding.rule is not None}
    return tuple(sorted(delivered - model.price.keys()))


def _policy(model: PublicModel) -> tuple[Policy | None, str]:
    try:
        return model.policy.parsed, ""
    except PolicyError as error:
        return None, str(error)


def examples_of(model: PublicModel) -> list[tuple[Example, Request | None]]:
    """The model's example requests, each with the normalized request where it is a valid one."""
    return [_example(model, number, body) for number, body in enumerate(model.example_requests, start=1)]


def _example(model: PublicModel, number: int, body: Request) -> tuple[Example, Request | None]:
    """The example as the customer's door would take it."""
    name = f"example {number}"
    try:
        request = normalized(
            model.modality, as_posted(body), model.limits, model.degradation, defaults_of(model.parameters)
        )
    except (InvalidRequest, DocumentError) as error:
        return Example(name, None, str(error)), None
    return Example(name, shape_of(model.modality, request)), request


def as_posted(body: Request) -> Request:
    """An example request as the door hands it on: addresses of assets as objects."""
    return {field: _reference(field, value) for field, value in body.items()}


def _reference(field: str, value: Any) -> Any:
    if field in ("first_frame", "last_frame"):
        return {"url": value}
    return [{"url": url} for url in value] if field.startswith("reference_") else value


def _bound(model: PublicModel, requests: list[tuple[str, Request]], now: datetime) -> Iterator[BoundSupply]:
    bindings = list(
        model.bindings.select_related("supply__channel", "supply__capability_version", "degradation_rule")
    )
    supplies = [binding.supply for binding in bindings]
    health = health_snapshot({supply.channel_id for supply in supplies}, {supply.pk for supply in supplies})
    prices = prices_in_force(now, supplies)
    for binding in bindings:
        supply = binding.supply
        capability, capability_problem = _capability(supply, now)
        price, price_problem = _price(prices.get(supply.pk), supply.modality)
        yield BoundSupply(
            supply=supply.slug,
            tier=binding.tier,
            enabled=binding.enabled,
            priority=binding.priority,
            states=(supply.state, supply.channel.state),
            health=(health.supplies[supply.pk].state, health.channels[supply.channel_id].state),
            has_credential=bool(supply.channel.credential),
            capability=capability,
            capability_problem=capability_problem,
            price=price,
            price_problem=price_problem,
            sunset_on=supply.sunset_on,
            rule=rule_of(binding),
            compile_problems=tuple(_compile_problems(supply, requests)) if binding.tier == "exact" else (),
        )


def _capability(supply: Supply, now: datetime) -> tuple[Capability | None, str]:
    version = supply.capability_version
    if version is None:
        return None, "has no published capability version"
    ended = version.effective_to is not None and version.effective_to <= now
    if version.effective_from > now or ended:
        return None, f"{version.label} is not in force"
    try:
        capability = parse_capability(supply.modality, version.document)
    except DocumentError as error:
        return None, f"{version.label}: {error}"
    return capability, "; ".join(contradictions(capability))


def _price(version: CostRuleVersion | None, modality: str) -> tuple[Price | None, str]:
    if version is None:
        return None, "has no price in force"
    try:
        return parse_price(version.document, modality), ""
    except DocumentError as error:
        return None, str(error)


def _compile_problems(supply: Supply, requests: Iterable[tuple[str, Request]]) -> Iterator[str]:
    version = supply.capability_version
    document = version.document if version else {}
    target = SupplyTarget(supply.provider_model, supply.model_version, document, supply.modality)
    adapter = adapter_for(supply.channel.provider)
    for name, request in requests:
        result = adapter.compile(request, target)
        if isinstance(result, CompileError):
            yield f"{name}: {'; '.join(result.reasons)}"
