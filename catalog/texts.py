"""What a text may hold to be kept."""

from typing import Final

UNSTORABLE: Final = "U+0000 and half of a surrogate pair can't be stored"


def is_storable(text: str) -> bool:
    """Whether PostgreSQL has it (no U+0000) and UTF-8 (no surrogates, the one thing it lacks of Python's)."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
