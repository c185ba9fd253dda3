"""One canonical form for every stored document that is named by its hash; pure."""

import hashlib
import json
from typing import Any


def document_hash(document: Any) -> str:
    """SHA-256, hexadecimal, of the JSON with sorted keys, without spaces, in UTF-8."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
