"""Saves a public model with its bindings: a new revision, unpublished until it passes the gates."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction

from billing.money import micros_of
from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.facts import BindingFacts, ModelFacts, in_order, plain
from catalog.models import (
    DegradationRule,
    DispatchPolicy,
    ModelRevision,
    PublicModel,
    Supply,
    SupplyBinding,
    Tier,
)
from catalog.repository import find_policy, policy_name, rule_facts
from catalog.revision import bump_revision, expect_revision, lock_revision
from dispatch.catalogue.repository import saved_model_facts


@transaction.atomic
def save_model(
    facts: ModelFacts, *, expected_revision: int | None, actor: Actor, now: datetime, note: str = ""
) -> PublicModel:
    """Saves the model named by `facts.slug`; `expected_revision` is None to create it. Any change clears
    `enabled` and `published`. Nothing is written where nothing differs.

    Raises StaleRevision, and CatalogueError for an unknown policy, supply or rule, or another modality."""
    lock_revision()
    row = PublicModel.objects.select_related("policy").filter(slug=facts.slug).first()
    expect_revision(f"public model {facts.slug}", expected_revision, row.revision if row else None)
    policy = find_policy(facts.policy)
    if policy is None:
        raise CatalogueError("policy", f"no policy {facts.policy!r}; save it first")
    facts = replace(facts, policy=policy_name(policy), bindings=in_order(facts.bindings))
    before = saved_model_facts(row) if row else None
    if row and before == facts:
        return row
    row = _filled(row or PublicModel(slug=facts.slug, modality=facts.modality, revision=0), facts, policy)
    row.save()
    _bind(row, facts.bindings)
    _keep_revision(row, facts, policy, note, actor, now)
    audited = plain(before) if before else None
    record(actor, Change("save model", f"model:{row.public_id}", audited, plain(facts)), now)
    bump_revision()
    return row


def _filled(row: PublicModel, facts: ModelFacts, policy: DispatchPolicy) -> PublicModel:
    if row.modality != facts.modality:
        raise CatalogueError("modality", f"a model keeps its modality ({row.modality}); make a new model")
    for name in ("display_name", "parameters", "profile", "disclosure", "degradation", "emergency_override"):
        setattr(row, name, getattr(facts, name))
    row.example_requests, row.allowed_groups = list(facts.example_requests), list(facts.allowed_groups)
    row.refusal_isolation, row.price = facts.refusal_isolation, facts.price
    row.baseline_micros = None if facts.baseline is None else micros_of(facts.baseline)
    row.policy = policy
    row.enabled = row.published = False
    row.revision += 1
    return row


def _bind(model: PublicModel, bindings: tuple[BindingFacts, ...]) -> None:
    kept = []
    for index, facts in enumerate(bindings):
        supply, rule = _supply(model, facts, index), _rule(facts, index)
        row, _ = SupplyBinding.objects.update_or_create(
            public_model=model,
            supply=supply,
            tier=facts.tier,
            defaults={"priority": facts.priority, "enabled": facts.enabled, "degradation_rule": rule},
        )
        kept.append(row.pk)
    model.bindings.exclude(pk__in=kept).delete()


def _supply(model: PublicModel, facts: BindingFacts, index: int) -> Supply:
    supply = Supply.objects.filter(slug=facts.supply).first()
    if supply is None:
        raise CatalogueError(f"bindings[{index}].supply", f"no supply {facts.supply!r}; save it first")
    if supply.modality != model.modality:
        raise CatalogueError(f"bindings[{index}].supply", f"{supply.slug} makes {supply.modality}")
    return supply


def _rule(facts: BindingFacts, index: int) -> DegradationRule | None:
    if (facts.tier == Tier.DEGRADED) != (facts.rule is not None):
        raise CatalogueError(f"bindings[{index}].rule", "is for tier degraded, and only for it")
    rule = DegradationRule.objects.filter(slug=facts.rule).first() if facts.rule else None
    if facts.rule and rule is None:
        raise CatalogueError(f"bindings[{index}].rule", f"no degradation rule {facts.rule!r}; save it first")
    return rule


def _keep_revision(
    row: PublicModel, facts: ModelFacts, policy: DispatchPolicy, note: str, actor: Actor, now: datetime
) -> None:
    ModelRevision.objects.create(
        public_model=row,
        number=row.revision,
        document=_revision_document(row, facts, policy),
        note=note,
        saved_by=actor.name,
        saved_at=now,
    )


def _revision_document(row: PublicModel, facts: ModelFacts, policy: DispatchPolicy) -> dict[str, Any]:
    """The model, and what its policy and its rules said then."""
    rules = DegradationRule.objects.filter(bindings__public_model=row).distinct()
    return {
        "model": plain(facts),
        "policy": policy.parameters,
        "rules": {rule.slug: plain(rule_facts(rule)) for rule in rules},
    }
