"""Makes a price the one in force of a supply; the former one ends, and the past is never edited."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from billing.models import CostRule, CostRuleVersion
from billing.repository import add_version, price_in_force
from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.models import Supply
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def publish_price(
    supply: Supply, document: Mapping[str, Any] | None, *, actor: Actor, now: datetime
) -> CostRuleVersion | None:
    """The version with that document (in the form of billing.pricing), in force from `now` until a version
    already planned begins; None ends the present one, so that the supply has no price. Nothing is written
    where nothing differs. Raises CatalogueError where the present version began at `now` or later."""
    lock_revision()
    present = price_in_force(supply, now)
    if (present.document if present else None) == document:
        return present
    if present:
        _end(present, now)
    version = _published(supply, document, actor, now) if document else None
    before = dict(present.document) if present else None
    record(actor, Change("publish price", f"supply:{supply.public_id}", before, document), now)
    bump_revision()
    return version


def _end(version: CostRuleVersion, now: datetime) -> None:
    if version.effective_from >= now:
        raise CatalogueError("", f"{version} began at {version.effective_from}: a change needs a later time")
    version.effective_to = now
    version.save(update_fields=["effective_to"])


def _published(supply: Supply, document: Mapping[str, Any], actor: Actor, now: datetime) -> CostRuleVersion:
    rule, _ = CostRule.objects.get_or_create(supply=supply)
    planned = rule.versions.filter(effective_from__gt=now, cancelled_at=None)
    first = planned.order_by("effective_from").first()
    end = first.effective_from if first else None
    return add_version(rule, document, start=now, end=end, by=actor.name, now=now)
