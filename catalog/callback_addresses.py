"""Where a channel's provider calls us: a path that nobody guesses, and the secrets behind its tokens.

Both follow from the master keys: the first makes them, every other still opens, so that keys can be changed
while jobs run. Nothing is stored that could leak."""

import hmac

from django.conf import settings

from catalog.models import Channel
from catalog.vault import parse_master_keys

_PATH_CHARS = 40


def callback_url(channel: Channel) -> str:
    """ "" without a public address, or where the channel is configured to be polled only."""
    paths = _paths(channel.public_id)
    if not settings.PUBLIC_URL or not paths or not channel.config.get("callbacks", True):
        return ""
    place = f"{channel.public_id}-{paths[0]}"
    return f"{settings.PUBLIC_URL.rstrip('/')}/callbacks/{channel.provider}/{place}/"


def callback_secrets(channel: Channel) -> tuple[str, ...]:
    """What the tokens of its addresses are made with; the first makes new ones."""
    return _derived("token", channel.public_id)


def channel_called(place: str) -> str | None:
    """The public id of the channel whose path this is; None for a path that we never gave to anybody."""
    public_id, _, secret = place.rpartition("-")
    known = [hmac.compare_digest(secret.encode(), path.encode()) for path in _paths(public_id)]
    return public_id if any(known) else None


def _paths(public_id: str) -> tuple[str, ...]:
    return tuple(secret[:_PATH_CHARS] for secret in _derived("path", public_id))


def _derived(purpose: str, public_id: str) -> tuple[str, ...]:
    if not settings.MASTER_KEYS:
        return ()
    message = f"frameyard callback {purpose}\n{public_id}".encode()
    keys = parse_master_keys(settings.MASTER_KEYS).by_id.values()
    return tuple(hmac.digest(key, message, "sha256").hex() for key in keys)
