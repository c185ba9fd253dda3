"""Saves a draft of a public model: the policy's changes as a new version, the model as a new revision."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction

from catalog.audit import Actor
from catalog.facts import policy_parameters
from catalog.models import DispatchPolicy, PublicModel
from catalog.policy import PolicyError
from catalog.services.save_policy import save_policy
from dispatch.drafting.reading import Draft
from dispatch.services.save_model import save_model


@transaction.atomic
def save_draft(
    draft: Draft, *, expected_revision: int, actor: Actor, now: datetime, note: str = ""
) -> PublicModel:
    """A model that shares the policy keeps the version that it has. Raises StaleRevision, CatalogueError."""
    row = PublicModel.objects.select_related("policy").get(slug=draft.facts.slug)
    facts = draft.facts
    if _is_changed(row.policy, draft.parameters):
        policy = save_policy(row.policy.slug, draft.parameters, actor=actor, now=now)
        facts = replace(facts, policy=f"{policy.slug}@{policy.version}")
    return save_model(facts, expected_revision=expected_revision, actor=actor, now=now, note=note)


def _is_changed(stored: DispatchPolicy, parameters: dict[str, Any]) -> bool:
    try:
        return policy_parameters(stored.parameters) != policy_parameters(parameters)
    except PolicyError:
        return stored.parameters != parameters
