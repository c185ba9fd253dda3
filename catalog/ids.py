"""Public ids: prefixed, sortable by time of creation, unguessable."""

import secrets
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base32: no i, l, o, u
_TIME_BITS, _RANDOM_BITS = 48, 82
LENGTH = (_TIME_BITS + _RANDOM_BITS) // 5


def public_id(prefix: str) -> str:
    """`prefix_` and 26 characters: 48 bits of Unix milliseconds, then 82 random bits."""
    number = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    return f"{prefix}_{base32(number, LENGTH)}"


def base32(number: int, length: int) -> str:
    """The lowest `length` × 5 bits, in an alphabet that sorts as the numbers do."""
    return "".join(ALPHABET[number >> shift & 31] for shift in range((length - 1) * 5, -1, -5))
