"""API keys: made, recognised, hashed; pure but for the operating system's randomness.

A key is `fy_live_`, 32 characters of 160 random bits, and six that check them, so that a mistyped or
invented key is refused without a query and a leaked one is found by scanners."""

import hashlib
import re
import secrets
import zlib
from dataclasses import dataclass, field

from catalog.ids import ALPHABET, base32

SCOPES = ("read", "submit")
_PREFIX = "fy_live_"
_BODY, _CHECK = 32, 6
_FORM = re.compile(rf"{_PREFIX}([{ALPHABET}]{{{_BODY}}})([{ALPHABET}]{{{_CHECK}}})\Z")


@dataclass(frozen=True)
class NewKey:
    """`secret` is shown once and never stored."""

    secret: str = field(repr=False)
    prefix: str
    last_four: str
    hash: str


def new_key() -> NewKey:
    body = "".join(secrets.choice(ALPHABET) for _ in range(_BODY))
    return key_from_secret(_PREFIX + body + _check(body))


def key_from_secret(secret: str) -> NewKey:
    """What is stored of a key that is already known, e.g. the one that a demo keeps between runs."""
    return NewKey(secret, secret[: len(_PREFIX) + 4], secret[-4:], hash_of(secret))


def is_well_formed(secret: str) -> bool:
    match = _FORM.match(secret)
    return match is not None and secrets.compare_digest(_check(match[1]), match[2])


def hash_of(secret: str) -> str:
    """SHA-256: a fast hash is right for 160 random bits, and look-up by hash compares in constant time."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _check(body: str) -> str:
    return base32(zlib.crc32(body.encode()), _CHECK)
