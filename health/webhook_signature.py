"""The Standard Webhooks signature: HMAC-SHA256 over id, timestamp and body; pure."""

import base64
import binascii
import hmac
from datetime import datetime

_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)


class SecretError(ValueError):
    """The text is no signing secret; the message says what one looks like."""


def signature_headers(message_id: str, body: bytes, secret: str, now: datetime) -> dict[str, str]:
    """The three headers of one message. `message_id` stays the same over retries. Raises SecretError."""
    timestamp = int(now.timestamp())
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    digest = hmac.digest(signing_key(secret), signed, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def signing_key(secret: str) -> bytes:
    """The bytes of `whsec_` and base64. Raises SecretError."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error as error:
        raise SecretError("a signing secret is whsec_ and base64") from error
    if not secret.startswith(_PREFIX) or len(key) not in _KEY_BYTES:
        raise SecretError("a signing secret is whsec_ and base64 of 24 to 64 bytes")
    return key
