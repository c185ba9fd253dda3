"""Brings an earlier revision of a public model back, through the same gates, in one action."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor
from catalog.facts import model_facts
from catalog.models import PublicModel
from dispatch.services.publish import GateReport, Published, publish
from dispatch.services.save_model import save_model


def revert_model(
    model: PublicModel, number: int, *, expected_revision: int, actor: Actor, now: datetime
) -> Published | GateReport:
    """Saves what revision `number` said as a new revision, with the policy version that it had, and
    publishes it. Where a gate is shut nothing is saved: the model stays as it was.

    Raises ModelRevision.DoesNotExist, StaleRevision, CatalogueError (a supply or rule is gone)."""
    document = model.revisions.get(number=number).document
    with transaction.atomic():
        row = save_model(
            model_facts(model.slug, document["model"]),
            expected_revision=expected_revision,
            actor=actor,
            now=now,
            note=f"revision {number} again",
        )
        result = publish(row, actor=actor, now=now)
        if isinstance(result, GateReport):
            transaction.set_rollback(True)
    return result
