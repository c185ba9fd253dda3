"""An operator lifts a refusal record: the one boundary that a person can make."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from health.memory import end_record
from health.models import RefusalRecord


def lift_refusal(record_id: int, actor: Actor, reason: str, now: datetime) -> bool:
    """The content may be sent there again, and is counted anew. False: it had ended already.

    Raises ValueError without a reason."""
    if not reason.strip():
        raise ValueError("lifting a refusal needs a reason")
    with transaction.atomic():
        row = RefusalRecord.objects.select_for_update().filter(pk=record_id, ended_at=None).first()
        if row is None:
            return False
        end_record(row, by=actor.name, why=reason, now=now)
        change = Change(
            "lift refusal",
            f"refusal:{row.public_id}",
            {"refusals": row.refusals, "frozen": row.frozen_at is not None},
            {"reason": reason},
        )
        record(actor, change, now)
        return True
