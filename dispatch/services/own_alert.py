"""Who works on an alert may change, or say what they found; the condition alone ends it."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from health.models import Alert

_NOBODY = {"acknowledged_at": None, "acknowledged_by": "", "note": ""}


@transaction.atomic
def take_over(alert_id: int, *, actor: Actor, now: datetime) -> bool:
    """From whoever acknowledged it. False: nobody did, or it was this person."""
    alert = Alert.objects.select_for_update().get(pk=alert_id)
    if alert.acknowledged_at is None or alert.acknowledged_by == actor.name:
        return False
    Alert.objects.filter(pk=alert.pk).update(acknowledged_at=now, acknowledged_by=actor.name, note="")
    _record(alert, "take over alert", {"by": actor.name}, actor, now)
    return True


@transaction.atomic
def unacknowledge(alert_id: int, *, actor: Actor, now: datetime) -> bool:
    """Nobody works on it any more. False: nobody did."""
    alert = Alert.objects.select_for_update().get(pk=alert_id)
    if alert.acknowledged_at is None:
        return False
    Alert.objects.filter(pk=alert.pk).update(**_NOBODY)
    _record(alert, "unacknowledge alert", None, actor, now)
    return True


@transaction.atomic
def note_on_alert(alert_id: int, note: str, *, actor: Actor, now: datetime) -> None:
    """Beside the note of the acknowledgement, and never in its place."""
    _record(Alert.objects.get(pk=alert_id), "note on alert", {"note": note}, actor, now)


def _record(alert: Alert, action: str, after: dict[str, str] | None, actor: Actor, now: datetime) -> None:
    before = {"by": alert.acknowledged_by, "note": alert.note} if alert.acknowledged_at else None
    record(actor, Change(action, f"alert:{alert.public_id}", before, after), now)
