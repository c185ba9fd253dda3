"""Codes of currencies; pure."""

from typing import Any


def is_currency(code: Any) -> bool:
    """Three capital letters, such as USD; whether anybody pays in it is not asked."""
    return isinstance(code, str) and len(code) == 3 and code.isascii() and code.isalpha() and code.isupper()
