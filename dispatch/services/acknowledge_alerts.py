"""Acknowledges alerts, each for the first who says so; several at once, but for critical ones."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from django.db import transaction

from catalog.audit import Actor, Change, record
from health.alerts import acknowledge
from health.models import Alert, Severity

MOST: Final = 500


class CriticalTicked(Exception):
    """`alerts` are critical: nothing was acknowledged."""

    def __init__(self, alerts: Sequence[Alert]) -> None:
        self.alerts = alerts
        super().__init__(f"{len(alerts)} critical alerts are each acknowledged on their own")


@transaction.atomic(savepoint=False)
def acknowledge_alert(alert: Alert, note: str, *, actor: Actor, now: datetime) -> bool:
    """False: somebody was first, and their name stays."""
    first = acknowledge(alert.pk, actor.name, note, now)
    if first:
        record(actor, Change("acknowledge alert", f"alert:{alert.public_id}", after={"note": note}), now)
    return first


@transaction.atomic
def acknowledge_alerts(
    public_ids: Collection[str], note: str, *, actor: Actor, now: datetime
) -> tuple[int, int]:
    """How many were acknowledged, and how many somebody else had been first with; one audit entry each.

    Raises CriticalTicked."""
    alerts = list(Alert.objects.select_for_update().filter(public_id__in=public_ids).order_by("pk")[:MOST])
    critical = [alert for alert in alerts if alert.severity == Severity.CRITICAL]
    if critical:
        raise CriticalTicked(critical)
    done = sum(acknowledge_alert(alert, note, actor=actor, now=now) for alert in alerts)
    return done, len(alerts) - done
