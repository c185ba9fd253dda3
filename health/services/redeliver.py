"""An operator sends a message about an alert once more, whether it was given up or arrived and was lost."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from health.models import AlertDelivery

State = AlertDelivery.State


def redeliver(delivery_id: str, actor: Actor, now: datetime, *, of_alert: int) -> bool:
    """Queues a delivery of this alert again, due at once and with all its tries, under the same message id: a
    receiver that has it knows it. False: there is none of this public id, or it is still on its way."""
    with transaction.atomic():
        ended = AlertDelivery.objects.exclude(state=State.PENDING).filter(alert=of_alert)
        row = ended.filter(public_id=delivery_id).select_for_update().first()
        if row is None:
            return False
        before = {"state": row.state, "tries": row.tries, "last_error": row.last_error}
        row.state, row.tries, row.next_try_at, row.delivered_at = State.PENDING, 0, now, None
        row.save(update_fields=["state", "tries", "next_try_at", "delivered_at"])
        change = Change(
            "send alert again",
            f"delivery:{row.public_id}",
            before,
            {"alert": f"alert:{row.alert.public_id}", "target": row.target},
        )
        record(actor, change, now)
        return True
