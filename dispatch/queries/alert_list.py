"""Alerts in the three groups in which they ask for attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import QuerySet
from django.http import QueryDict

from catalog.models import AuditEntry
from dispatch.queries.needs import ALARMS_SHOWN
from health.alerts import SEVERITIES
from health.models import Alert, AlertDelivery, Severity

LIMIT: Final = 200
_RESOLVED_SHOWN: Final = timedelta(hours=24)
_SIMILAR_SHOWN: Final = timedelta(days=30)
_STEPS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """`subject` is what an alert is about, or the beginning of it."""

    codes: tuple[str, ...] = ()
    severity: str = ""
    subject: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.codes or self.severity or self.subject)

    def of(self, alerts: QuerySet[Alert]) -> QuerySet[Alert]:
        if self.codes:
            alerts = alerts.filter(code__in=self.codes)
        if self.severity:
            alerts = alerts.filter(severity=self.severity)
        return alerts.filter(subject__startswith=self.subject) if self.subject else alerts


EVERY_ALERT: Final = AlertFilter()


def parse_filter(query: QueryDict) -> AlertFilter:
    severity = query.get("severity", "")
    return AlertFilter(
        codes=tuple(code for code in query.getlist("code") if code in SEVERITIES),
        severity=severity if severity in Severity.values else "",
        subject=query.get("subject", "").strip()[:120],
    )


@dataclass(frozen=True)
class AlertGroups:
    """A resolved critical alert that nobody acknowledged stays in the first."""

    need_a_person: Sequence[Alert]
    firing: Sequence[Alert]
    resolved: Sequence[Alert]

    @property
    def all_quiet(self) -> bool:
        return not (self.need_a_person or self.firing)

    @property
    def is_empty(self) -> bool:
        return self.all_quiet and not self.resolved

    @property
    def all(self) -> Sequence[Alert]:
        return [*self.need_a_person, *self.firing, *self.resolved]


def alert_groups(now: datetime, wanted: AlertFilter = EVERY_ALERT) -> AlertGroups:
    """Three queries; at most LIMIT of each group but the first."""
    return AlertGroups(*(list(group) for group in _groups(now, wanted)))


def _groups(now: datetime, wanted: AlertFilter) -> tuple[QuerySet[Alert], QuerySet[Alert], QuerySet[Alert]]:
    alerts = wanted.of(Alert.objects.all())
    needs = alerts.filter(pk__in=Alert.objects.needing_acknowledgement()).order_by("id")[:ALARMS_SHOWN]
    others = alerts.exclude(pk__in=needs.values("pk"))
    firing = others.filter(resolved_at=None).order_by("-opened_at", "-id")
    resolved = others.filter(resolved_at__gte=now - _RESOLVED_SHOWN).order_by("-resolved_at")
    return needs, firing[:LIMIT], resolved[:LIMIT]


def groups_again(told: Sequence[str]) -> AlertGroups:
    """What a screen shows, as it is now: `told` is `group:public id`, in order, and nothing moves."""
    ids = [each.partition(":")[2] for each in told]
    found = {alert.public_id: alert for alert in Alert.objects.filter(public_id__in=ids)}
    of: dict[str, list[Alert]] = {group: [] for group in ("needs", "firing", "resolved")}
    for each in told:
        group, _colon, public_id = each.partition(":")
        if group in of and public_id in found:
            of[group].append(found[public_id])
    return AlertGroups(of["needs"], of["firing"], of["resolved"])


def arrived(now: datetime, wanted: AlertFilter, told: Sequence[str]) -> int:
    """How many of what would be shown now are not on the screen; three queries."""
    ids = {
        public_id for group in _groups(now, wanted) for public_id in group.values_list("public_id", flat=True)
    }
    return len(ids - {each.partition(":")[2] for each in told})


def to_acknowledge(wanted: AlertFilter, as_of: datetime) -> QuerySet[Alert]:
    """What can be acknowledged together: firing, not critical, nobody on it; the oldest first."""
    alone = Alert.objects.unresolved().filter(acknowledged_at=None, opened_at__lte=as_of)
    return wanted.of(alone.exclude(severity=Severity.CRITICAL)).order_by("opened_at", "id")


def last_resolved() -> Alert | None:
    return Alert.objects.filter(resolved_at__isnull=False).order_by("-resolved_at").first()


def find_alert(public_id: str) -> Alert | None:
    return Alert.objects.filter(public_id=public_id).first()


def deliveries(alert: Alert) -> Sequence[AlertDelivery]:
    """The messages about it: where to, and whether they arrived; oldest first."""
    return list(alert.deliveries.order_by("id"))


def steps_by_people(alert: Alert) -> Sequence[AuditEntry]:
    """Everything that people did about it, oldest first."""
    entries = AuditEntry.objects.filter(subject=f"alert:{alert.public_id}").order_by("at", "id")
    return list(entries[:_STEPS_SHOWN])


def similar(alert: Alert, now: datetime) -> Sequence[Alert]:
    """The same condition before, in the last 30 days, newest first."""
    same = Alert.objects.filter(subject=alert.subject, code=alert.code, opened_at__gte=now - _SIMILAR_SHOWN)
    return list(same.exclude(pk=alert.pk).order_by("-opened_at")[:10])
