"""Links to one output that work without a key until they expire."""

import hashlib
import hmac
from collections.abc import Sequence
from enum import StrEnum
from urllib.parse import urlencode

MAX_SPAN_S = 7 * 86_400
_PURPOSE = b"frameyard output link 1"


class LinkState(StrEnum):
    """What a signed link is worth."""

    VALID = "valid"
    EXPIRED = "expired"
    FORGED = "forged"


def sign_link(key: bytes, job_id: str, number: int, expires_at: int) -> str:
    """`/api/v1/jobs/{job_id}/output/{number}/?expires=…&signature=…`; `expires_at` in Unix seconds."""
    query = urlencode({"expires": expires_at, "signature": _signature(key, job_id, number, expires_at)})
    return f"/api/v1/jobs/{job_id}/output/{number}/?{query}"


def check_link(
    keys: Sequence[bytes], job_id: str, number: int, expires: str, signature: str, now: int
) -> LinkState:
    """Judge the two query parameters as they came.

    `keys`: any may have signed, so that one can be replaced. The signature is compared in constant time and
    before the expiry, so that a stranger learns nothing from a guess.
    """
    expires_at = int(expires) if expires.isascii() and expires.isdigit() and len(expires) <= 12 else -1
    if str(expires_at) != expires:  # one spelling only: a link that was changed is another link
        return LinkState.FORGED
    given = signature.encode("utf-8", "replace")
    matches = [
        hmac.compare_digest(_signature(key, job_id, number, expires_at).encode(), given) for key in keys
    ]
    if not any(matches) or expires_at > now + MAX_SPAN_S:
        return LinkState.FORGED
    return LinkState.VALID if now < expires_at else LinkState.EXPIRED


def _signature(key: bytes, job_id: str, number: int, expires_at: int) -> str:
    # A key of its own per purpose: the same secret may sign other things elsewhere.
    own_key = hmac.digest(key, _PURPOSE, hashlib.sha256)
    return hmac.digest(own_key, f"{job_id}\n{number}\n{expires_at}".encode(), hashlib.sha256).hex()
