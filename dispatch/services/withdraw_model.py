"""Takes a public model from customers: new requests get `model_not_published`, queued jobs wait."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.models import PublicModel
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def withdraw_model(model: PublicModel, *, actor: Actor, now: datetime, why: str = "") -> PublicModel:
    """Clears `enabled` and `published`; running attempts go on. Nothing is written where both are clear."""
    lock_revision()
    row = PublicModel.objects.get(pk=model.pk)
    before = {"enabled": row.enabled, "published": row.published}
    if not any(before.values()):
        return row
    row.enabled = row.published = False
    row.save(update_fields=["enabled", "published", "updated_at"])
    after = {"enabled": False, "published": False, "why": why}
    record(actor, Change("withdraw model", f"model:{row.public_id}", before, after), now)
    bump_revision()
    return row
