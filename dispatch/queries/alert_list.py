"""Alerts in the three groups in which they ask for attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from dispatch.queries.needs import unacknowledged_critical
from health.models import Alert, AlertDelivery

LIMIT: Final = 200
_RESOLVED_SHOWN: Final = timedelta(hours=24)
_SIMILAR_SHOWN: Final = timedelta(days=30)


@dataclass(frozen=True)
class AlertGroups:
    """A resolved critical alert that nobody acknowledged stays in the first."""

    need_a_person: Sequence[Alert]
    firing: Sequence[Alert]
    resolved: Sequence[Alert]

    @property
    def all_quiet(self) -> bool:
        return not (self.need_a_person or self.firing)


def alert_groups(now: datetime) -> AlertGroups:
    needs = unacknowledged_critical()
    shown = [alert.pk for alert in needs]
    firing = Alert.objects.unresolved().exclude(pk__in=shown).order_by("-opened_at", "-id")
    resolved = Alert.objects.filter(resolved_at__gte=now - _RESOLVED_SHOWN).exclude(pk__in=shown)
    return AlertGroups(needs, list(firing[:LIMIT]), list(resolved.order_by("-resolved_at")[:LIMIT]))


def last_resolved() -> Alert | None:
    return Alert.objects.filter(resolved_at__isnull=False).order_by("-resolved_at").first()


def find_alert(public_id: str) -> Alert | None:
    return Alert.objects.filter(public_id=public_id).first()


def deliveries(alert: Alert) -> Sequence[AlertDelivery]:
    """The messages about it: where to, and whether they arrived; oldest first."""
    return list(alert.deliveries.order_by("id"))


def similar(alert: Alert, now: datetime) -> Sequence[Alert]:
    """The same condition before, in the last 30 days, newest first."""
    same = Alert.objects.filter(subject=alert.subject, code=alert.code, opened_at__gte=now - _SIMILAR_SHOWN)
    return list(same.exclude(pk=alert.pk).order_by("-opened_at")[:10])
