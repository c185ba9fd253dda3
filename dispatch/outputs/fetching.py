"""Download one foreign URL into a file: guarded, bounded, hashed on the way.

Every outcome a stranger can cause is a value. No URL appears in one: locators are signed and secret."""

import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from dispatch.outputs.addresses import Refusal, Target, judge_address, judge_target, read_url
from dispatch.outputs.limits import FetchLimits
from dispatch.outputs.pinned import (
    Deadline,
    DeadlinePassed,
    PinnedConnection,
    Resolve,
    resolve_within,
    system_addresses,
)

READ_BYTES = 256 * 1024
MAX_ADDRESSES_TRIED = 4
MAX_RETRY_AFTER_S = 86_400

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LOCATOR_REJECTED = frozenset({401, 403, 404, 410})
# What the transport itself says; a locator's headers never replace it.
_OUR_HEADERS = frozenset(
    {"host", "accept-encoding", "connection", "content-length", "transfer-encoding", "te", "upgrade", "range"}
)


class Failure(StrEnum):
    """Why a permitted fetch did not succeed; stable, for logs and operators."""

    DNS = "dns_failed"
    CONNECT = "connect_failed"
    CONNECTION_LOST = "connection_lost"
    DEADLINE = "deadline_passed"
    LOCATOR_EXPIRED = "locator_expired"
    SERVER = "server_error"
    STATUS = "unexpected_status"
    TRUNCATED = "truncated"
    EMPTY = "empty_body"
    STORAGE = "storage_failed"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A whole body in a file of its own; the caller owns the file and moves or removes it."""

    path: Path
    size_bytes: int
    sha256: str
    declared_type: str  # what the server said; nothing is decided by it


@dataclass(frozen=True, slots=True)
class FetchRefused:
    """The guard said no: trying this locator again gives the same answer."""

    code: Refusal


@dataclass(frozen=True, slots=True)
class FetchFailed:
    """The network or the other side failed.

    `retryable`: this locator may work later; otherwise ask the provider for a fresh one.
    """

    code: Failure
    retryable: bool
    status: int | None = None
    retry_after_s: int | None = None


FetchOutcome = Fetched | FetchRefused | FetchFailed


def fetch(
    url: str,
    into: Path,
    limits: FetchLimits,
    *,
    headers: Mapping[str, str] | None = None,
    resolve: Resolve = system_addresses,
) -> FetchOutcome:
    """GET `url` into a new file below the existing directory `into`.

    `headers` are the locator's own (an Authorization, say) and go to the first origin only. Proxies, netrc
    and cookies are never used. Nothing is left in `into` unless the outcome is `Fetched`.
    See docs/outputs.md.
    """
    with Deadline(limits.deadline_s) as deadline:
        try:
            return _Journey(limits, deadline, resolve, dict(headers or {}), into).run(url)
        except DeadlinePassed:
            return FetchFailed(Failure.DEADLINE, retryable=True)
        except StorageTrouble:
            return FetchFailed(Failure.STORAGE, retryable=True)


def keep(content: Iterable[bytes], into: Path, limits: FetchLimits, declared_type: str = "") -> FetchOutcome:
    """The same for bytes that came inside a provider's answer (base64 images) or a customer's upload."""
    try:
        with Part(into, limits.max_bytes) as part:
            for chunk in content:
                if not part.takes(chunk):
                    return FetchRefused(Refusal.TOO_LARGE)
            return part.finish(declared_type)
    except StorageTrouble:
        return FetchFailed(Failure.STORAGE, retryable=True)


class StorageTrouble(Exception):
    """Disk full, quota, no inode left: nothing of the other side's doing."""


class _Journey:
    """One fetch with its redirects."""

    def __init__(
        self, limits: FetchLimits, deadline: Deadline, resolve: Resolve, headers: dict[str, str], into: Path
    ) -> None:
        self._limits = limits
        self._deadline = deadline
        self._resolve = resolve
        self._headers = {name: value for name, value in headers.items() if name.lower() not in _OUR_HEADERS}
        self._into = into
        self._tls = _tls_context(limits.ca_file or DEFAULT_CA_BUNDLE_PATH)

    def run(self, url: str) -> FetchOutcome:
        first_origin: str | None = None
        left_home = False
        for _ in range(self._limits.max_redirects + 1):
            target = read_url(url)
            if isinstance(target, Refusal):
                return FetchRefused(target)
            first_origin = first_origin or target.origin
            left_home = left_home or target.origin != first_origin
            connection = self._connect(target, left_home=left_home)
            if not isinstance(connection, PinnedConnection):
                return connection
            with closing(connection):
                outcome = self._exchange(connection, target, {} if left_home else self._headers)
            if not isinstance(outcome, str):
                return outcome
            url = outcome
        return FetchRefused(Refusal.TOO_MANY_REDIRECTS)

    def _connect(self, target: Target, *, left_home: bool) -> PinnedConnection | FetchRefused | FetchFailed:
        private_allowed = self._limits.allow_private or (
            not left_home and target.origin in self._limits.trusted_origins
        )
        refusal = judge_target(target, self._limits.ports, private_allowed=private_allowed)
        if refusal is not None:
            return FetchRefused(refusal)
        addresses = self._addresses(target)
        if isinstance(addresses, FetchFailed):
            return addresses
        # One bad record spoils the name: an attacker may not choose which of them we happen to take.
        for address in addresses:
            refusal = judge_address(address, private_allowed=private_allowed)
            if refusal is not None:
                return FetchRefused(refusal)
        return self._connect_to_any(target, addresses[:MAX_ADDRESSES_TRIED])

    def _addresses(self, target: Target) -> list[str] | FetchFailed:
        if target.literal is not None:
            return [target.literal]
        try:
            return resolve_within(self._resolve, target.host, target.port, self._deadline.remaining_s())
        except DeadlinePassed:
            raise
        except OSError:
            return self._failed(Failure.DNS)

    def _connect_to_any(self, target: Target, addresses: list[str]) -> PinnedConnection | FetchFailed:
        for address in addresses:
            connection = PinnedConnection(
                target,
                address,
                self._deadline,
                connect_timeout_s=self._limits.connect_timeout_s,
                tls=self._tls,
            )
            try:
                connection.connect()
            except OSError:
                connection.close()
                continue
            return connection
        return self._failed(Failure.CONNECT)

    def _exchange(
        self, connection: PinnedConnection, target: Target, headers: dict[str, str]
    ) -> FetchOutcome | str:
        """The outcome, or the URL of the next hop."""
        try:
            with closing(self._ask(connection, target, headers)) as response:
                return self._read(response, target)
        except DeadlinePassed:
            raise
        except (OSError, HTTPException):
            return self._failed(Failure.CONNECTION_LOST)

    def _ask(self, connection: PinnedConnection, target: Target, headers: dict[str, str]) -> HTTPResponse:
        connection.sock.settimeout(self._limits.read_timeout_s)
        # Never compressed on the way: media does not shrink, and a bomb can't grow.
        own = {"User-Agent": "Frameyard", "Accept": "*/*"}
        sent = {name.lower(): value for name, value in (own | headers).items()}
        connection.putrequest("GET", target.resource, skip_host=True, skip_accept_encoding=True)
        for name, value in {**sent, "host": target.host_header, "accept-encoding": "identity"}.items():
            connection.putheader(name, value)
        connection.putheader("connection", "close")
        connection.endheaders()
        return connection.getresponse()

    def _read(self, response: HTTPResponse, target: Target) -> FetchOutcome | str:
        location = response.getheader("location")
        if response.status in _REDIRECTS and location:
            return _next_url(target, location)
        if response.status != 200:
            return _of_status(response)
        if response.getheader("content-encoding", "identity").strip().lower() not in ("", "identity"):
            return FetchRefused(Refusal.ENCODED_BODY)
        if response.length is not None and response.length > self._limits.max_bytes:
            return FetchRefused(Refusal.TOO_LARGE)
        return self._receive(response)

    def _receive(self, response: HTTPResponse) -> FetchOutcome:
        announced = response.length
        with Part(self._into, self._limits.max_bytes) as part:
            # read1 returns after one read of the socket, so the deadline is looked at between any two.
            while chunk := response.read1(READ_BYTES):
                if not part.takes(chunk):
                    return FetchRefused(Refusal.TOO_LARGE)
                self._deadline.remaining_s()
            self._deadline.remaining_s()  # cut by the watchdog, even within the headers, it looks whole
            if announced is not None and part.size_bytes < announced:
                return FetchFailed(Failure.TRUNCATED, retryable=True)
            return part.finish(response.getheader("content-type", ""))

    def _failed(self, code: Failure) -> FetchFailed:
        return FetchFailed(Failure.DEADLINE if self._deadline.passed else code, retryable=True)


class Part:
    """The file being written: removed again unless it is finished."""

    def __init__(self, into: Path, max_bytes: int) -> None:
        self._into = into
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256()
        self._finished = False
        self.size_bytes = 0

    def __enter__(self) -> Self:
        try:
            descriptor, name = tempfile.mkstemp(dir=self._into, prefix="fetch-", suffix=".part")
        except OSError as error:
            raise StorageTrouble from error
        self._path = Path(name)
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if not self._finished:
            self._path.unlink(missing_ok=True)

    def takes(self, chunk: bytes) -> bool:
        """Whether it still fits; written if so."""
        self.size_bytes += len(chunk)
        if self.size_bytes > self._max_bytes:
            return False
        self._hash.update(chunk)
        try:
            _write_all(self._file.fileno(), chunk)
        except OSError as error:
            raise StorageTrouble from error
        return True

    def finish(self, declared_type: str) -> Fetched | FetchFailed:
        if self.size_bytes == 0:
            return FetchFailed(Failure.EMPTY, retryable=True)
        self._finished = True
        return Fetched(self._path, self.size_bytes, self._hash.hexdigest(), declared_type)


def _write_all(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _next_url(target: Target, location: str) -> str | FetchRefused:
    try:
        # Headers are read as latin-1; servers that send UTF-8 there mean UTF-8.
        return urljoin(target.url, location.encode("latin-1").decode("utf-8", "replace"))
    except ValueError:
        return FetchRefused(Refusal.BAD_URL)


def _of_status(response: HTTPResponse) -> FetchFailed:
    status = response.status
    if status in _LOCATOR_REJECTED:
        return FetchFailed(Failure.LOCATOR_EXPIRED, retryable=False, status=status)
    if status >= 500 or status in (408, 425, 429):
        return FetchFailed(
            Failure.SERVER, retryable=True, status=status, retry_after_s=_retry_after_s(response)
        )
    return FetchFailed(Failure.STATUS, retryable=False, status=status)


def _retry_after_s(response: HTTPResponse) -> int | None:
    text = response.getheader("retry-after", "").strip()
    return min(int(text), MAX_RETRY_AFTER_S) if text.isascii() and text.isdigit() and len(text) < 10 else None


@lru_cache(maxsize=4)
def _tls_context(ca_file: str) -> ssl.SSLContext:
    """Reading the authorities takes 20 ms, so once per process."""
    return ssl.create_default_context(cafile=ca_file)
