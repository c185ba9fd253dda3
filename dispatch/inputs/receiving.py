"""Receives one uploaded file in chunks, straight into the store's own file system.

Nothing is gathered in memory, and nothing is written beyond what a file of its kind may have: the first
bytes say which kind that is."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from dispatch.errors import AssetInvalid, AssetTooLarge
from dispatch.outputs.fetching import Fetched, Part, StorageTrouble
from dispatch.outputs.media import HEAD_BYTES, sniff

CHUNK_BYTES: Final = 64 * 1024


class StoreUnavailable(Exception):
    """Our own disk: the same upload may well succeed later."""


class Incoming:
    """One file on its way in. A context: what is not finished is removed.

    `limits`: most bytes by kind (image, video, audio)."""

    def __init__(self, into: Path, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._part = Part(into, max(limits.values()))
        self._head = b""
        self._limit: int | None = None

    def __enter__(self) -> Self:
        try:
            self._part.__enter__()
        except StorageTrouble as error:
            raise StoreUnavailable from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._part.__exit__(kind, error, trace)

    def take(self, chunk: bytes) -> None:
        """Raises AssetInvalid, AssetTooLarge, StoreUnavailable."""
        if self._limit is None:
            self._head += chunk[: HEAD_BYTES - len(self._head)]
        try:
            fits = self._part.takes(chunk)
        except StorageTrouble as error:
            raise StoreUnavailable from error
        if self._limit is None and len(self._head) >= HEAD_BYTES:
            self._limit = self._limit_of_kind()
        if not fits or (self._limit is not None and self._part.size_bytes > self._limit):
            raise AssetTooLarge(self._limit or max(self._limits.values()))

    def finish(self) -> Fetched:
        """The whole file, which is the caller's now. Raises AssetInvalid for an empty one."""
        self._limit = self._limit_of_kind()
        if self._part.size_bytes > self._limit:
            raise AssetTooLarge(self._limit)
        outcome = self._part.finish("")
        if not isinstance(outcome, Fetched):
            raise AssetInvalid("empty")
        return outcome

    def _limit_of_kind(self) -> int:
        sniffed = sniff(self._head)
        if sniffed is None:
            raise AssetInvalid("empty" if not self._head else "not_media")
        return self._limits[sniffed.kind]
