"""An API key ends; its next request is refused."""

from datetime import datetime

from django.db import transaction

from billing.models import ApiKey
from catalog.audit import Actor, Change, record


@transaction.atomic
def revoke_key(key: ApiKey, *, actor: Actor, now: datetime) -> bool:
    """False where it had already been revoked: the first time stays."""
    if not ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now):
        return False
    before = {"customer": key.customer.name, "key": str(key)}
    record(actor, Change("revoke api key", f"api_key:{key.public_id}", before=before), now)
    return True
