"""Creates or changes a supply; its capability and its price are published apart."""

from dataclasses import asdict
from datetime import date, datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.facts import SupplyFacts
from catalog.models import Channel, Supply
from catalog.repository import supply_facts
from catalog.revision import bump_revision, expect_revision, lock_revision

_COPIED = (
    "provider_model",
    "model_family",
    "model_version",
    "concurrency",
    "unknown_limit",
    "state",
    "lifecycle",
)


@transaction.atomic
def save_supply(facts: SupplyFacts, *, expected_revision: int | None, actor: Actor, now: datetime) -> Supply:
    """Saves the supply named by `facts.slug`; `expected_revision` is None to create it. Nothing is
    written where nothing differs. Raises StaleRevision, CatalogueError (unknown or another channel)."""
    lock_revision()
    row = Supply.objects.select_related("channel").filter(slug=facts.slug).first()
    expect_revision(f"supply {facts.slug}", expected_revision, row.revision if row else None)
    before = supply_facts(row) if row else None
    if row and before == facts:
        return row
    row = _changed(row, facts) if row else _new(facts)
    row.save()
    audited = asdict(before) if before else None
    record(actor, Change("save supply", f"supply:{row.public_id}", audited, asdict(facts)), now)
    bump_revision()
    return row


def _new(facts: SupplyFacts) -> Supply:
    channel = Channel.objects.filter(slug=facts.channel).first()
    if channel is None:
        raise CatalogueError("channel", f"no channel {facts.channel!r}; save it first")
    return _filled(Supply(slug=facts.slug, channel=channel, modality=facts.modality, revision=0), facts)


def _changed(row: Supply, facts: SupplyFacts) -> Supply:
    for name, stored in (("channel", row.channel.slug), ("modality", row.modality)):
        if stored != getattr(facts, name):
            # Attempts, statistics and refusals of the supply speak of that channel and modality.
            raise CatalogueError(name, f"a supply keeps its {name} ({stored}); make a new supply")
    return _filled(row, facts)


def _filled(row: Supply, facts: SupplyFacts) -> Supply:
    for name in _COPIED:
        setattr(row, name, getattr(facts, name))
    row.real_person_policy = facts.real_person_policy or ""
    row.sunset_on = date.fromisoformat(facts.sunset) if facts.sunset else None
    row.revision += 1
    return row
