"""The Idempotency-Key header."""

import re

from rest_framework.request import Request

from dispatch.errors import InvalidRequest

_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")


def idempotency_key(request: Request) -> str | None:
    """The key that came with a request. Raises InvalidRequest."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _KEY.match(key):
        raise InvalidRequest("An Idempotency-Key is 1 to 200 visible characters.", "Idempotency-Key")
    return key
