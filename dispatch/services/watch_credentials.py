"""Once a minute: which channels' credentials are about to expire."""

from datetime import datetime, timedelta

from django.conf import settings

from catalog.models import AdminState, Channel
from health.alerts import raise_alert, resolve_all_but

CODE = "credential_expiring"


def watch_credentials(now: datetime) -> None:
    """Of every channel that is not disabled; ended by a later date, or by the channel's own end."""
    last_day = now.date() + timedelta(days=settings.ALERT_CREDENTIAL_DAYS)
    in_use = Channel.objects.exclude(state=AdminState.DISABLED).exclude(credential="")
    keys = []
    for channel in in_use:
        expires_on = channel.credential_expires_on
        if expires_on is None or expires_on > last_day:
            continue
        subject, days_left = f"channel:{channel.slug}", (expires_on - now.date()).days
        details = {"expires_on": expires_on.isoformat(), "days_left": days_left}
        raise_alert(CODE, subject=subject, dedupe_key=f"{CODE}:{subject}", details=details, now=now)
        keys.append(f"{CODE}:{subject}")
    resolve_all_but(CODE, keys, "the credential is good for longer, or the channel is disabled", now)
