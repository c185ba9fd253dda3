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
    for channel in in_use.filter(credential_expires_on__lte=last_day):
        slug, expires_on = channel.slug, channel.credential_expires_on or last_day
        keys.append(f"{CODE}:channel:{slug}")
        details = {"expires_on": expires_on.isoformat(), "days_left": (expires_on - now.date()).days}
        raise_alert(CODE, subject=f"channel:{slug}", dedupe_key=keys[-1], details=details, now=now)
    resolve_all_but(CODE, keys, "the credential is good for longer, or the channel is disabled", now)
