"""Messages about alerts: to whom they go, what they say, and how long they are tried.

Rows are queued in the transaction that opens the alert; `health.services.deliver_alerts` sends them."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q

from health.models import Alert, AlertDelivery, AlertSubscription, Severity
from health.replay import moment

Means = AlertDelivery.Means

# Whoever has a role reads alerts.
_READERS = Q(user__is_active=True) & (Q(user__is_superuser=True) | Q(user__groups__isnull=False))
# After each try; then it is given up, about a day later.
RETRY_AFTER = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720))


@dataclass(frozen=True, slots=True)
class Targets:
    """Where this installation sends alerts; an empty one is not used."""

    webhook_url: str
    webhook_secret: str  # whsec_…
    emails: tuple[str, ...]
    public_url: str  # that links begin with

    def all(self) -> list[tuple[Means, str]]:
        webhook = [(Means.WEBHOOK, self.webhook_url)] if self.webhook_url else []
        return webhook + [(Means.EMAIL, address) for address in self.emails]


def targets() -> Targets:
    return Targets(
        webhook_url=settings.ALERT_WEBHOOK_URL,
        webhook_secret=settings.ALERT_WEBHOOK_SECRET,
        emails=tuple(settings.ALERT_EMAILS),
        public_url=settings.PUBLIC_URL,
    )


def queue_deliveries(alert: Alert, now: datetime) -> None:
    """One row for each target, due at once, of the alert's opening or of its last raising again; what is
    only information stays in the console. An address that the installation and a person name is told once."""
    if alert.severity == Severity.INFO:
        return
    persons = [(Means.EMAIL, address) for address in _subscribed(alert)]
    AlertDelivery.objects.bulk_create(
        AlertDelivery(
            alert=alert, means=means, target=target, reraise=alert.reraises, created_at=now, next_try_at=now
        )
        for means, target in dict.fromkeys([*targets().all(), *persons])
    )


def _subscribed(alert: Alert) -> list[str]:
    """The addresses of those who want to be told of it, and who may still read it."""
    wanted = AlertSubscription.objects.filter(_READERS)
    if alert.severity != Severity.CRITICAL:
        wanted = wanted.filter(only_critical=False)
    return list(wanted.order_by("address").values_list("address", flat=True).distinct())


def next_try_at(tries: int, now: datetime) -> datetime | None:
    """After `tries` failed ones; None: it is given up."""
    return now + RETRY_AFTER[tries - 1] if tries <= len(RETRY_AFTER) else None


def message(delivery: AlertDelivery) -> dict[str, Any]:
    """What a webhook carries: ids, numbers and a link."""
    alert, is_first = delivery.alert, delivery.reraise == 0
    return {
        "type": "alert.opened" if is_first else "alert.reraised",
        "timestamp": moment(alert.opened_at if is_first else delivery.created_at),
        "data": {
            "id": alert.public_id,
            "code": alert.code,
            "severity": alert.severity,
            "subject": alert.subject,
            "details": alert.details,
            "url": link(alert),
        },
    }


def body(delivery: AlertDelivery) -> bytes:
    return json.dumps(message(delivery), separators=(",", ":")).encode()


def subject_line(delivery: AlertDelivery) -> str:
    alert, again = delivery.alert, "again " if delivery.reraise else ""
    return f"[Frameyard {settings.ENVIRONMENT_NAME}] {again}{alert.severity}: {alert.code} {alert.subject}"


def text(delivery: AlertDelivery) -> str:
    alert = delivery.alert
    since = f"about {alert.subject}, since {moment(alert.opened_at)}"
    details = [f"{name}: {value}" for name, value in alert.details.items()]
    return "\n".join([f"{alert.code} ({alert.severity})", since, "", *details, "", link(alert)])


def link(alert: Alert) -> str:
    return f"{targets().public_url.rstrip('/')}/console/alerts/{alert.public_id}/"
