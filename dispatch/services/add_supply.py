"""Adds a supply with what it can do and what it charges, all or nothing; no public model uses it yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from billing.services.publish_price import publish_price
from catalog.audit import Actor
from catalog.facts import SupplyFacts
from catalog.models import Supply
from catalog.services.publish_capability import publish_capability
from catalog.services.save_supply import save_supply
from dispatch.models import SupplyDraft


@dataclass(frozen=True, slots=True)
class NewSupply:
    """`label` names the version of its capability. Without `price` nothing is sent to it until it has one."""

    facts: SupplyFacts
    label: str
    capability: Mapping[str, Any]
    price: Mapping[str, Any] | None


@transaction.atomic
def add_supply(new: NewSupply, draft: SupplyDraft, *, actor: Actor, now: datetime) -> Supply:
    """Its draft is gone with that. Raises StaleRevision where the slug exists, CatalogueError."""
    supply = save_supply(new.facts, expected_revision=None, actor=actor, now=now)
    publish_capability(supply, new.label, new.capability, actor=actor, now=now)
    if new.price is not None:
        publish_price(supply, new.price, actor=actor, now=now)
    draft.delete()
    return supply


def keep_draft(
    draft: SupplyDraft | None, user: User, step: str, typed: Mapping[str, str], now: datetime
) -> SupplyDraft:
    """As typed, whether it can be read or not; a new draft where there is none."""
    if draft is None:
        return SupplyDraft.objects.create(user=user, typed={step: dict(typed)}, begun_at=now, changed_at=now)
    draft.typed = {**draft.typed, step: dict(typed)}
    draft.changed_at = now
    draft.save(update_fields=["typed", "changed_at"])
    return draft


def discard_draft(user: User, public_id: str) -> None:
    SupplyDraft.objects.filter(user=user, public_id=public_id).delete()
