"""One HTTP call at a time, and exactly how far it came.

Every call answers a value: `Answer`, whole, or `Broken` with the phase it broke in. Before the phase
`sending` no byte of the request has left; from it on nobody may assume that none arrived."""

import contextlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPException
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import urlencode

from requests import PreparedRequest
from requests.utils import requote_uri
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
)
from urllib3.response import HTTPResponse
from urllib3.util import parse_url

from catalog.providers.flight import Connection, Departure, Flight, connection_to
from catalog.providers.redaction import cleaned
from catalog.providers.types import ChannelAccess, Phase, SendForbidden

type BreakKind = Literal[
    "dns",
    "connect",
    "tls",
    "forbidden",
    "unsendable",
    "deadline",
    "timeout",
    "broken",
    "too_large",
    "encoding",
]

_DETAIL_CHARS = 300
_CHUNK_BYTES = 64 * 1024
_CONNECTIONS_PER_THREAD = 32
_HEADERS: Final = {"User-Agent": "frameyard", "Accept": "application/json", "Accept-Encoding": "identity"}
_SHORTEST_SECRET_BYTES = 8  # a shorter one is a word of the demo, and may stand in any text


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes. The deadline covers the whole call, from looking up the host to the last byte.
    The first byte leaves within `departure_s` of asking `before_send`, or stays here."""

    connect_timeout_s: float = 10
    read_timeout_s: float = 60
    deadline_s: float = 90
    max_response_bytes: int = 8 * 1024 * 1024
    departure_s: float = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    status: int
    headers: Mapping[str, str]  # looked up whatever the case
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Broken:
    """No whole response. `status` is known where the response had begun."""

    phase: Phase
    kind: BreakKind
    detail: str
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def proved_unsent(self) -> bool:
        return self.phase == "connecting"


type Exchange = Answer | Broken


class Transport:
    """Calls to one channel. Connections are kept per thread, and nothing of one call goes into the next:
    neither a credential nor a cookie. No proxy and no ~/.netrc of this machine changes anything."""

    def __init__(
        self, access: ChannelAccess, limits: Limits | None = None, ca_file: str | None = None
    ) -> None:
        self.access = access
        self.limits = limits or Limits()
        self._ca_file = ca_file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close: kept connections outlive one call on purpose, and end with their thread."""

    def post_once(
        self,
        path: str,
        document: Mapping[str, Any],
        headers: Mapping[str, str],
        before_send: Callable[[], None] | None = None,
    ) -> Exchange:
        """Over a connection of its own, so that no stale one can swallow it. Never repeated.

        `before_send` runs on the standing connection before the first byte; its SendForbidden becomes a
        `Broken` of kind `forbidden`, any other exception of its own passes through, nothing being sent."""
        body = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        headers = {**headers, "Content-Type": "application/json"}
        return self._call(_once, "POST", path, headers, body=body, before_send=before_send)

    def ask(
        self,
        method: Literal["GET", "DELETE"],
        path: str,
        headers: Mapping[str, str],
        params: Iterable[tuple[str, str]] = (),
    ) -> Exchange:
        """Over a kept connection: for calls that may be repeated."""
        query = urlencode(list(params))
        return self._call(_kept.line, method, f"{path}?{query}" if query else path, headers)

    def _call(
        self,
        line: "Line",
        method: str,
        path: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        before_send: Callable[[], None] | None = None,
    ) -> Exchange:
        limits = self.limits
        with Flight(limits.deadline_s, before_send, limits.departure_s) as flight:
            try:
                place = _place_of(self.access.base_url, self._ca_file)
                with line(place) as connection:
                    response = connection.call(
                        flight,
                        method,
                        requote_uri(place.path + path),
                        {**_HEADERS, **headers},
                        body,
                        limits.connect_timeout_s,
                        limits.read_timeout_s,
                    )
                    exchange = self._read(response, flight)
                    if isinstance(exchange, Broken):
                        connection.close()  # with what was not read of it
                    return exchange
            except SendForbidden as error:
                return Broken("connecting", "forbidden", str(error))
            except (HTTPError, HTTPException, OSError, Departure) as error:
                return self._broken(flight, _kind_of(error, flight, self.access.base_url), error)
            except ValueError as error:  # a host or a header that can't be written
                if flight.has_asked:
                    raise
                return self._broken(flight, "unsendable", error)

    def _read(self, response: HTTPResponse, flight: Flight) -> Exchange:
        body = bytearray()
        for chunk in response.stream(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > self.limits.max_response_bytes:
                response.close()
                return Broken("body", "too_large", f"more than {len(body) - 1} bytes", response.status)
        if flight.land():
            return Answer(response.status, response.headers, self._without_credential(bytes(body)))
        # Shut down within the headers, a response looks whole: status 200 and no bytes.
        return Broken("body" if body else flight.phase, "deadline", "the deadline passed", flight.status)

    def _without_credential(self, body: bytes) -> bytes:
        """Some servers quote the request in their errors; so nothing after this line can store the key."""
        secret = self.access.credential.encode()
        return body.replace(secret, b"...") if len(secret) >= _SHORTEST_SECRET_BYTES else body

    def _broken(self, flight: Flight, kind: BreakKind, error: Exception) -> Broken:
        detail = f"{type(error).__name__}: {error}".replace(self.access.credential or "\0", "…")
        return Broken(flight.phase, kind, cleaned(detail, _DETAIL_CHARS), flight.status)


def _kind_of(error: Exception, flight: Flight, url: str) -> BreakKind:
    if flight.expired:
        return "deadline"
    if flight.phase == "connecting":
        return _kind_of_connecting(error, flight, url)
    if isinstance(error, DecodeError):
        return "encoding"
    # A write that times out is no `Timeout`, a stalled body no `ReadTimeout`.
    return "timeout" if any(isinstance(cause, TimeoutError) for cause in _causes(error)) else "broken"


def _kind_of_connecting(error: Exception, flight: Flight, url: str) -> BreakKind:
    if flight.reached and url.casefold().startswith("https:"):
        return "tls"  # a handshake that hangs or is reset looks like a read timeout or a reset
    if any(isinstance(cause, NameResolutionError) for cause in _causes(error)):
        return "dns"
    unreached = isinstance(error, NewConnectionError | ConnectTimeoutError | OSError)
    if unreached and not isinstance(error, ValueError):
        return "connect"
    return "unsendable"


def _causes(error: BaseException) -> Iterable[BaseException]:
    """The error with all that it was raised from or wraps."""
    seen: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        cause = waiting.pop()
        if isinstance(cause, BaseException) and cause not in seen:
            seen.append(cause)
            waiting += [cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args]
    return seen


# --- connections -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a channel's calls go."""

    scheme: str
    host: str
    port: int | None
    path: str  # before that of each call
    ca_file: str | None


type Line = Callable[[Place], contextlib.AbstractContextManager[Connection]]


@lru_cache(maxsize=1024)
def _place_of(base_url: str, ca_file: str | None) -> Place:
    """Raises ValueError for an address that is none."""
    request = PreparedRequest()
    request.prepare_url(base_url.rstrip("/"), None)
    url = parse_url(request.url or "")
    if url.scheme not in ("http", "https") or url.host is None:
        raise ValueError(f"{base_url!r} is no address of the web")
    return Place(url.scheme, url.host.strip("[]"), url.port, (url.path or "").rstrip("/"), ca_file)


@contextmanager
def _once(place: Place) -> Iterator[Connection]:
    connection = connection_to(place.scheme, place.host, place.port, place.ca_file)
    try:
        yield connection
    finally:
        connection.close()


class _Kept(threading.local):
    """The connections of a thread that wait for its next call; the one used longest ago goes first."""

    def __init__(self) -> None:
        self.connections: OrderedDict[Place, Connection] = OrderedDict()

    @contextmanager
    def line(self, place: Place) -> Iterator[Connection]:
        connection = self.connections.pop(place, None)
        if connection is None:
            connection = connection_to(place.scheme, place.host, place.port, place.ca_file)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self.connections[place] = connection
        if len(self.connections) > _CONNECTIONS_PER_THREAD:
            self.connections.popitem(last=False)[1].close()


_kept = _Kept()
