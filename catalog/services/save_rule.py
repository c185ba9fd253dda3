"""Creates a degradation rule, or changes whether it counts as verified and published."""

from dataclasses import asdict
from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.facts import RuleFacts
from catalog.models import DegradationRule, PublicModel
from catalog.repository import rule_facts
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def save_rule(facts: RuleFacts, *, actor: Actor, now: datetime) -> DegradationRule:
    """Saves the rule named by `facts.slug`, and withdraws the models that degrade by it until they are
    published again; nothing is written where nothing differs.

    Raises CatalogueError for a published rule with another transformation: deliveries refer to it,
    and an earlier revision of a model must mean what it meant."""
    lock_revision()
    row = DegradationRule.objects.filter(slug=facts.slug).first()
    before = rule_facts(row) if row else None
    if row and before == facts:
        return row
    if before and before.published:
        _refuse_another_transformation(before, facts)
    row = _filled(row or DegradationRule(slug=facts.slug), facts, now)
    row.save()
    audited = asdict(before) if before else None
    after = asdict(facts) | {"withdrawn_models": _withdraw_models(row, actor, now)}
    record(actor, Change("save rule", f"rule:{row.public_id}", audited, after), now)
    bump_revision()
    return row


def _refuse_another_transformation(before: RuleFacts, after: RuleFacts) -> None:
    for name in ("from_profile", "to_profile", "drop_inputs"):
        if getattr(before, name) != getattr(after, name):
            raise CatalogueError(name, "a published rule keeps its transformation; make a new rule")


def _withdraw_models(row: DegradationRule, actor: Actor, now: datetime) -> list[str]:
    """Each with an entry of its own, so that its page can say who took it out of production, and why."""
    models = PublicModel.objects.filter(published=True, bindings__degradation_rule=row).distinct()
    ids = dict(models.order_by("slug").values_list("slug", "public_id"))
    PublicModel.objects.filter(slug__in=ids).update(enabled=False, published=False)
    after = {"enabled": False, "published": False, "because_of_rule": row.slug}
    for public_id in ids.values():
        record(actor, Change("withdraw model", f"model:{public_id}", after=after), now)
    return list(ids)


def _filled(row: DegradationRule, facts: RuleFacts, now: datetime) -> DegradationRule:
    if facts.published and not facts.verified:
        raise CatalogueError("published", "only a verified rule can be published; set verified: true")
    row.from_profile, row.to_profile = facts.from_profile, facts.to_profile
    row.drop_inputs = list(facts.drop_inputs)
    row.verified_at = (row.verified_at or now) if facts.verified else None
    row.published_at = (row.published_at or now) if facts.published else None
    return row
