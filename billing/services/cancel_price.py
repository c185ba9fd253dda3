"""Takes a planned price back before it begins; the one before it goes on."""

from datetime import datetime

from django.db import transaction

from billing.models import CostRuleVersion
from catalog.audit import Actor, Change, record
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def cancel_price(version: CostRuleVersion, *, actor: Actor, now: datetime) -> bool:
    """False where it has begun or was cancelled before: then nothing changes. The row stays, as evidence."""
    lock_revision()
    live = CostRuleVersion.objects.filter(pk=version.pk, cancelled_at=None, effective_from__gt=now)
    if not live.update(cancelled_at=now):
        return False
    former = CostRuleVersion.objects.filter(
        rule=version.rule_id, cancelled_at=None, effective_to=version.effective_from
    )
    former.update(effective_to=version.effective_to)
    change = Change(
        "cancel price",
        f"supply:{version.rule.supply.public_id}",
        before={"version": version.number, "from": version.effective_from.isoformat()},
    )
    record(actor, change, now)
    bump_revision()
    return True
