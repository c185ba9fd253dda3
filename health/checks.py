"""System checks of where alerts are sent."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from health.deliveries import targets
from health.webhook_signature import SecretError, signing_key


@register()
def alert_webhook_can_be_signed(**_: Any) -> list[CheckMessage]:
    if not targets().webhook_url:
        return []
    try:
        signing_key(targets().webhook_secret)
    except SecretError as error:
        hint = "Set FRAMEYARD_ALERT_WEBHOOK_SECRET, or leave FRAMEYARD_ALERT_WEBHOOK_URL empty."
        return [Error(f"Alerts can't be sent to the webhook: {error}", hint=hint, id="health.E001")]
    return []
