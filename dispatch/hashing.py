"""One canonical form for everything that is hashed."""

import hashlib
import json
from typing import Any


def canonical(document: Any) -> bytes:
    """Sorted keys, no spaces, UTF-8: the same bytes whatever the order in which it was written."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256_of(document: Any) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()
