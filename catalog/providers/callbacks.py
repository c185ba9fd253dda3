"""Authenticity for providers that do not sign: our own token in the address that we give them to call."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import urlencode

from catalog.providers.types import ChannelAccess

REPLAY_WINDOW = timedelta(minutes=5)


def callback_address(base: str, access: ChannelAccess, client_request_key: str) -> str:
    """`base` with the key and the token that only the holder of the channel's credential can make."""
    query = urlencode({"key": client_request_key, "token": _token(access, client_request_key)})
    return f"{base}{'&' if '?' in base else '?'}{query}"


def verified_key(query: Mapping[str, str], access: ChannelAccess) -> str | None:
    """The client request key that the called address proves; None where it is forged."""
    key, token = query.get("key", ""), query.get("token", "")
    genuine = hmac.compare_digest(token.encode(), _token(access, key).encode())
    return key if key and access.credential and genuine else None


def is_fresh(sent_at: datetime | None, now: datetime) -> bool:
    return sent_at is not None and abs(now - sent_at) <= REPLAY_WINDOW


def event_id(body: bytes) -> str:
    """For providers that number no events: the same words are the same event."""
    return hashlib.sha256(body).hexdigest()


def _token(access: ChannelAccess, key: str) -> str:
    message = f"frameyard callback\n{access.slug}\n{key}"
    return hmac.new(access.credential.encode(), message.encode(), hashlib.sha256).hexdigest()
