"""Acknowledges several alerts at once, for the first who says so; critical ones are not among them."""

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
    done = 0
    for alert in alerts:
        if acknowledge(alert.pk, actor.name, note, now):
            subject = f"alert:{alert.public_id}"
            record(actor, Change("acknowledge alert", subject, after={"note": note}), now)
            done += 1
    return done, len(alerts) - done
