"""The Idempotency-Key header."""

import re
from typing import Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from dispatch.errors import InvalidRequest

_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")
KEY_HEADER: Final = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description=(
        "1 to 200 visible characters of your own. The same key with the same body makes no second job and "
        "gets the first answer again, byte for byte: its `state` is what it was then (`queued`, say), even "
        "when the job has long ended. Get the job by its `id` to see how it stands. With another body: 409."
    ),
)


def idempotency_key(request: Request) -> str | None:
    """The key that came with a request. Raises InvalidRequest."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _KEY.match(key):
        raise InvalidRequest("An Idempotency-Key is 1 to 200 visible characters.", "Idempotency-Key")
    return key
