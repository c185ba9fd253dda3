"""Plans a price that begins later: the version in force ends there, and nothing overlaps or is left out."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from billing.models import CostRule, CostRuleVersion
from billing.pricing import parse_price
from billing.repository import add_version
from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.models import Supply
from catalog.revision import bump_revision, lock_revision


class PriceClash(CatalogueError):
    """The new version would overlap `other`, or leave a gap after it; `kind` is `overlap` or `gap`."""

    def __init__(self, kind: str, other: CostRuleVersion) -> None:
        self.kind, self.other = kind, other
        said = "begins at or after this start" if kind == "overlap" else "ends before this start"
        super().__init__("effective_from", f"version {other.number} {said}")


@transaction.atomic
def schedule_price(
    supply: Supply, document: Mapping[str, Any], start: datetime, *, actor: Actor, now: datetime
) -> CostRuleVersion:
    """The planned version, from `start` on without an end; the one before it ends there. Attempts keep the
    version that they were selected by. Raises CatalogueError for a start that is not after `now`,
    DocumentError for a document that cannot be executed, PriceClash for an overlap or a gap."""
    if start <= now:
        raise CatalogueError("effective_from", "a planned price begins later than now")
    parse_price(document, supply.modality)
    lock_revision()
    rule, _ = CostRule.objects.get_or_create(supply=supply)
    former = clash_free(rule, start)
    if former and former.effective_to is None:
        former.effective_to = start
        former.save(update_fields=["effective_to"])
    version = add_version(rule, document, start=start, end=None, by=actor.name, now=now)
    record(actor, Change("schedule price", f"supply:{supply.public_id}", after=_told(version)), now)
    bump_revision()
    return version


def clash_free(rule: CostRule, start: datetime) -> CostRuleVersion | None:
    """The version that applies up to `start`, None where there never was one. Raises PriceClash."""
    versions = rule.versions.filter(cancelled_at=None)
    other = versions.filter(effective_from__gte=start).order_by("effective_from").first()
    if other is not None:
        raise PriceClash("overlap", other)
    former = versions.order_by("-effective_from").first()
    if former and former.effective_to is not None and former.effective_to < start:
        raise PriceClash("gap", former)
    return former


def _told(version: CostRuleVersion) -> dict[str, Any]:
    return {
        "version": version.number,
        "from": version.effective_from.isoformat(),
        "document": dict(version.document),
    }
