"""Creates or renames a customer group."""

from datetime import datetime

from django.db import transaction

from billing.models import CustomerGroup
from catalog.audit import Actor, Change, record
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def save_customer_group(slug: str, name: str, *, actor: Actor, now: datetime) -> CustomerGroup:
    """Nothing is written where nothing differs."""
    lock_revision()
    row = CustomerGroup.objects.filter(slug=slug).first()
    if row and row.name == name:
        return row
    before = {"name": row.name} if row else None
    row = row or CustomerGroup(slug=slug)
    row.name = name
    row.save()
    record(actor, Change("save customer group", f"customer_group:{slug}", before, {"name": name}), now)
    bump_revision()
    return row
