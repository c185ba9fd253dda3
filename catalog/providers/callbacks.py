"""Authenticity for providers that do not sign: our own token in the address that we give them to call."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from catalog.providers.types import ChannelAccess

REPLAY_WINDOW = timedelta(minutes=5)

# A property of the channel's configuration, for every adapter that can be called back.
CONFIG: Final[Mapping[str, Any]] = {
    "callbacks": {
        "description": "Whether the provider is asked to call back; otherwise tasks are only polled.",
        "type": "boolean",
        "default": True,
    }
}


def callback_address(access: ChannelAccess, client_request_key: str) -> str:
    """The channel's address with the key and a token that only we can make; "" where none is to be given."""
    if not access.callback_url or not access.callback_secrets:
        return ""
    token = _token(access.callback_secrets[0], client_request_key)
    return f"{access.callback_url}?{urlencode({'key': client_request_key, 'token': token})}"


def verified_key(query: Mapping[str, str], access: ChannelAccess) -> str | None:
    """The client request key that the called address proves, by any secret; None where it is forged."""
    key, token = query.get("key", ""), query.get("token", "").encode()
    matches = [hmac.compare_digest(token, _token(secret, key).encode()) for secret in access.callback_secrets]
    return key if key and any(matches) else None


def is_fresh(sent_at: datetime | None, now: datetime) -> bool:
    return sent_at is not None and abs(now - sent_at) <= REPLAY_WINDOW


def event_id(body: bytes) -> str:
    """For providers that number no events: the same words are the same event."""
    return hashlib.sha256(body).hexdigest()


def _token(secret: str, key: str) -> str:
    return hmac.new(secret.encode(), f"frameyard callback\n{key}".encode(), hashlib.sha256).hexdigest()
