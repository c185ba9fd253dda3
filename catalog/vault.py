"""Credentials at rest: one data key each, wrapped by a versioned master key, bound to its row.

AES-256-GCM twice: the master key seals a random data key, the data key seals the secret. The row's
name is authenticated with both, so a ciphertext copied to another row does not open."""

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES, _KEY_BYTES = 12, 32


class VaultError(Exception):
    """A secret cannot be opened: the master key is missing or another, or the row holds none of its own."""


@dataclass(frozen=True)
class MasterKeys:
    """`current` seals; every key in `by_id` opens."""

    current: str
    by_id: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True)
class _Envelope:
    key: str  # the id of the master key
    wrapped: bytes
    sealed: bytes


def parse_master_keys(entries: list[str]) -> MasterKeys:
    """`["2026a:<base64 of 32 bytes>", …]`, the current one first. Raises VaultError naming the bad entry."""
    keys: dict[str, bytes] = {}
    for entry in entries:
        key_id, _, encoded = entry.partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except ValueError:
            key = b""
        if not key_id or len(key) != _KEY_BYTES:
            raise VaultError(
                f"master key {key_id or '?'!r} is not `id:` and the base64 of {_KEY_BYTES} bytes"
            )
        keys[key_id] = key
    if not keys:
        raise VaultError("no master key is set: FRAMEYARD_MASTER_KEYS is empty")
    return MasterKeys(next(iter(keys)), keys)


def seal(secret: str, row: str, keys: MasterKeys) -> str:
    """The text to store for `secret` in the row named `row` (e.g. `channel:chn_…:credential`)."""
    data_key = secrets.token_bytes(_KEY_BYTES)
    envelope = {
        "key": keys.current,
        "wrapped": _encrypt(keys.by_id[keys.current], data_key, row),
        "sealed": _encrypt(data_key, secret.encode(), row),
    }
    return json.dumps(envelope, separators=(",", ":"))


def unseal(envelope: str, row: str, keys: MasterKeys) -> str:
    """Raises VaultError where the key is not at hand or the text is no envelope, or not this row's."""
    parts = _read(envelope, row)
    master = keys.by_id.get(parts.key)
    if master is None:
        raise VaultError(
            f"master key {parts.key!r} is not among FRAMEYARD_MASTER_KEYS; put it back to read {row}"
        )
    data_key = _decrypt(master, parts.wrapped, row)
    return _decrypt(data_key, parts.sealed, row).decode()


def reseal(envelope: str, row: str, keys: MasterKeys) -> str:
    """The same secret under the current master key; unchanged where it already is. Raises as `unseal`."""
    if _read(envelope, row).key == keys.current:
        return envelope
    return seal(unseal(envelope, row, keys), row, keys)


def _read(envelope: str, row: str) -> _Envelope:
    try:
        parts = json.loads(envelope)
        return _Envelope(str(parts["key"]), _bytes(parts["wrapped"]), _bytes(parts["sealed"]))
    except (ValueError, LookupError, TypeError) as error:
        raise VaultError(f"{row} holds no sealed secret: enter the credential again") from error


def _bytes(encoded: str) -> bytes:
    """Raises ValueError where there is no nonce and something after it."""
    raw = base64.b64decode(encoded, validate=True)
    if len(raw) <= _NONCE_BYTES:
        raise ValueError(f"{len(raw)} bytes are too few")
    return raw


def _encrypt(key: bytes, plain: bytes, row: str) -> str:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return base64.b64encode(nonce + AESGCM(key).encrypt(nonce, plain, row.encode())).decode()


def _decrypt(key: bytes, raw: bytes, row: str) -> bytes:
    try:
        return AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], row.encode())
    except InvalidTag as error:
        raise VaultError(
            f"{row} does not open: FRAMEYARD_MASTER_KEYS has another key under the same id, or the row was "
            "copied; put that key back or enter the credential again"
        ) from error
