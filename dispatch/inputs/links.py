"""Links to one uploaded file that work without a key until they expire; pure."""

import hmac
from collections.abc import Sequence
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

MAX_SPAN_S: Final = 7 * 86_400
_PURPOSE: Final = b"frameyard input link 1"


class LinkState(StrEnum):
    """What a signed link is worth."""

    VALID = "valid"
    EXPIRED = "expired"
    FORGED = "forged"


def sign_link(key: bytes, asset_id: str, suffix: str, expires_at: int) -> str:
    """A path with its query; `expires_at` in Unix seconds. The suffix is there for providers that tell a
    file's type by its name."""
    query = urlencode({"expires": expires_at, "signature": _signature(key, asset_id, expires_at)})
    return f"/api/v1/assets/{asset_id}/file.{suffix}?{query}"


def check_link(keys: Sequence[bytes], asset_id: str, expires: str, signature: str, now: int) -> LinkState:
    """Judges the two query parameters as they came.

    `keys`: any may have signed, so that one can be replaced. The signature is compared in constant time and
    before the expiry, so that a stranger learns nothing from a guess."""
    expires_at = int(expires) if expires.isascii() and expires.isdigit() and len(expires) <= 12 else -1
    if str(expires_at) != expires:  # one spelling only: a link that was changed is another link
        return LinkState.FORGED
    given = signature.encode("utf-8", "replace")
    matches = [hmac.compare_digest(_signature(key, asset_id, expires_at).encode(), given) for key in keys]
    if not any(matches) or expires_at > now + MAX_SPAN_S:
        return LinkState.FORGED
    return LinkState.VALID if now < expires_at else LinkState.EXPIRED


def _signature(key: bytes, asset_id: str, expires_at: int) -> str:
    # A key of its own per purpose: the same secret signs other things elsewhere.
    own_key = hmac.digest(key, _PURPOSE, "sha256")
    return hmac.digest(own_key, f"{asset_id}\n{expires_at}".encode(), "sha256").hex()
