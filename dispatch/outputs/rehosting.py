"""One output from its locator to our own store: fetched, proved, placed; or why not.

Repeatable at every point: what an earlier try placed is found and proved again, without asking the provider,
whose address may have expired in the meantime."""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dispatch.outputs.addresses import Refusal
from dispatch.outputs.fetching import Failure, Fetched, FetchFailed, FetchOutcome, FetchRefused, fetch, keep
from dispatch.outputs.limits import FetchLimits, MediaLimits
from dispatch.outputs.media import Invalid, Verified, verify
from dispatch.outputs.pinned import Resolve, system_addresses
from dispatch.outputs.storage import MediaStore, Stored


@dataclass(frozen=True, slots=True)
class Rehosted:
    """The output is ours: what lies in the store, and what it was proved to be."""

    stored: Stored
    media: Verified


RehostOutcome = Rehosted | FetchRefused | FetchFailed | Invalid


@dataclass(frozen=True, slots=True)
class Rehosting:
    """The store and the bounds, the same for every output of an installation."""

    store: MediaStore
    fetch_limits: FetchLimits
    media_limits: MediaLimits
    resolve: Resolve = system_addresses

    def from_url(
        self, url: str, name: str, kind: str, *, headers: Mapping[str, str] | None = None
    ) -> RehostOutcome:
        """`url` with the locator's `headers` becomes the object `name`; `kind`: video, image or audio.

        A `data:` URL is an output that came inside the provider's answer.
        """
        return self._rehost(name, kind, lambda: self._obtain(url, headers))

    def _obtain(self, url: str, headers: Mapping[str, str] | None) -> FetchOutcome:
        if not url.startswith("data:"):
            return fetch(url, self.store.incoming(), self.fetch_limits, headers=headers, resolve=self.resolve)
        content = _inline_content(url)
        if content is None:
            return FetchRefused(Refusal.BAD_URL)
        return keep([content], self.store.incoming(), self.fetch_limits)

    def _rehost(self, name: str, kind: str, obtain: Callable[[], FetchOutcome]) -> RehostOutcome:
        try:
            earlier = self._earlier(name, kind)
            return earlier or self._prove_and_place(obtain(), name, kind)
        except OSError:
            # Our own disk or process table, not the provider: the same try again may well succeed.
            return FetchFailed(Failure.STORAGE, retryable=True)

    def _earlier(self, name: str, kind: str) -> Rehosted | None:
        stored = self.store.find(name)
        if stored is None:
            return None
        media = verify(self.store.path(name), kind, self.media_limits)
        return Rehosted(stored, media) if isinstance(media, Verified) else None

    def _prove_and_place(self, outcome: FetchOutcome, name: str, kind: str) -> RehostOutcome:
        if not isinstance(outcome, Fetched):
            return outcome
        try:
            media = verify(outcome.path, kind, self.media_limits)
            if isinstance(media, Invalid):
                return media
            stored = self.store.place(outcome.path, name, outcome.sha256)
        finally:
            outcome.path.unlink(missing_ok=True)
        if stored.sha256 == outcome.sha256:
            return Rehosted(stored, media)
        # Another worker was first with other bytes: what lies there counts, and is what we describe.
        media = verify(self.store.path(name), kind, self.media_limits)
        return media if isinstance(media, Invalid) else Rehosted(stored, media)


def _inline_content(url: str) -> bytes | None:
    """The bytes of a base64 `data:` URL; None if it is no such URL."""
    prefix, comma, content = url.partition(",")
    if not comma or not prefix.endswith(";base64"):
        return None
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error:
        return None
