"""The cards of the list of alerts: what each shows, as one plain value."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dispatch.queries.alert_list import AlertGroups
from dispatch.queries.alert_subjects import About
from dispatch.templatetags.console import age
from health.models import Alert, Severity


@dataclass(frozen=True, slots=True)
class AlertCard:
    """Cards that are equal look alike. `group`: needs, firing or resolved. `firing_for` is in words."""

    public_id: str
    group: str
    code: str
    severity: str
    subject: str
    about: About
    count: int
    firing_for: str
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str
    note: str
    is_ticked: bool

    @property
    def can_be_ticked(self) -> bool:
        return self.group == "firing" and self.severity != Severity.CRITICAL


def cards_of(
    groups: AlertGroups, abouts: Mapping[str, About], ticked: Collection[str], now: datetime
) -> Mapping[str, Sequence[AlertCard]]:
    """By group."""
    of = {"needs": groups.need_a_person, "firing": groups.firing, "resolved": groups.resolved}
    return {
        group: [
            _card(alert, group, abouts[alert.public_id], alert.public_id in ticked, now) for alert in alerts
        ]
        for group, alerts in of.items()
    }


def _card(alert: Alert, group: str, about: About, is_ticked: bool, now: datetime) -> AlertCard:
    return AlertCard(
        public_id=alert.public_id,
        group=group,
        code=alert.code,
        severity=alert.severity,
        subject=alert.subject,
        about=about,
        count=alert.count,
        firing_for="" if alert.resolved_at else age(alert.opened_at, now),
        resolved_at=alert.resolved_at,
        acknowledged_at=alert.acknowledged_at,
        acknowledged_by=alert.acknowledged_by,
        note=alert.note,
        is_ticked=is_ticked,
    )
