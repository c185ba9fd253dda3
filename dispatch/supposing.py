"""A public model as it is edited, in the circumstances of this moment: the router's input for "what if".

Reads without a lock, stores nothing, and counts nothing."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from billing.money import micros_of
from catalog.degradation import Rule
from catalog.document import DocumentError
from catalog.facts import BindingFacts, ModelFacts
from catalog.hashing import document_hash
from catalog.models import DegradationRule, PublicModel
from catalog.policy import PolicyError, parse_policy
from catalog.repository import rule_facts
from catalog.shape import shape_of
from dispatch.compiling import Compilations
from dispatch.errors import InvalidRequest
from dispatch.gate_evidence import as_posted
from dispatch.live_catalogue import LiveCatalogue, ServedModel, rates_to
from dispatch.requests import defaults_of, normalized
from dispatch.routing import types as routing
from dispatch.selection_facts import glance

_PROMPT = "An example"


def supposed_model(
    row: PublicModel,
    facts: ModelFacts,
    parameters: Mapping[str, Any],
    catalogue: LiveCatalogue,
    now: datetime,
) -> ServedModel:
    """The model with the draft's bindings and policy. Supplies without a capability in force are left out,
    as a selection leaves them out. A policy that can't be stands back for its defaults: a gate says so."""
    served = catalogue.models[row.pk]
    policy = _policy(parameters)
    rates, rate_versions = rates_to(policy.currency, now)
    return replace(
        served,
        model=replace(
            served.model,
            degradation=facts.degradation,  # type: ignore[arg-type]
            emergency_override=facts.emergency_override,
            baseline_micros=None if facts.baseline is None else micros_of(facts.baseline),
        ),
        policy=policy,
        policy_version=routing.Version(facts.policy, document_hash(parameters)),
        candidates=_candidates(facts, catalogue),
        rates=rates,
        rate_versions=rate_versions,
    )


def _policy(parameters: Mapping[str, Any]) -> Any:
    try:
        return parse_policy(parameters)
    except PolicyError:
        return parse_policy({})


def _candidates(facts: ModelFacts, catalogue: LiveCatalogue) -> tuple[routing.Candidate, ...]:
    bound = [each for each in facts.bindings if each.supply in catalogue.routed]
    rules = _rules(bound)
    keys = routing.candidate_keys((each.supply, each.tier) for each in bound)  # type: ignore[misc]
    return tuple(
        routing.Candidate(
            key=keys[each.supply, each.tier],  # type: ignore[index]
            supply=catalogue.routed[each.supply],
            tier=each.tier,  # type: ignore[arg-type]
            priority=each.priority,
            enabled=each.enabled,
            rule=rules.get(each.rule or ""),
        )
        for each in bound
    )


def _rules(bindings: list[BindingFacts]) -> dict[str, Rule]:
    named = {each.rule for each in bindings if each.rule}
    if not named:
        return {}
    facts = [rule_facts(row) for row in DegradationRule.objects.filter(slug__in=named)]
    return {
        each.slug: Rule(each.from_profile, each.to_profile, each.drop_inputs, each.verified, each.published)
        for each in facts
    }


def supposed_inputs(
    model: ServedModel, catalogue: LiveCatalogue, request: Mapping[str, Any], now: datetime
) -> routing.RoutingInput:
    """One normalized request of the model, in the circumstances of now: its first attempt."""
    facts = glance(catalogue, [model], now)
    return routing.RoutingInput(
        now=now,
        model=model.model,
        policy=model.policy,
        policy_version=model.policy_version,
        shape=shape_of(model.model.modality, request),
        candidates=model.candidates,
        channels=facts.channels(model),
        supplies=facts.supplies(model),
        groups=facts.groups(model),
        statistics=facts.statistics,
        demands=routing.Demands(
            degradation=request.get("degradation"),
            strict_model=request.get("routing_mode") == "strict_model",
            regions=frozenset(request.get("regions") or ()),
        ),
        rates=model.rates,
        rate_versions=model.rate_versions,
        compile_refusals=Compilations(request, model, catalogue),
    )


def typical_request(model: PublicModel) -> Mapping[str, Any] | None:
    """The first example request that the model takes, else its defaults; None where it takes neither."""
    for body in (*model.example_requests, {"prompt": _PROMPT}):
        try:
            return normalized(
                model.modality,
                as_posted(body),
                model.limits,
                model.degradation,
                defaults_of(model.parameters),
            )
        except (InvalidRequest, DocumentError):
            continue
    return None
