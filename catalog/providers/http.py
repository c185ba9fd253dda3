"""One HTTP call at a time, and exactly how far it came.

Every call answers a value: `Answer`, whole, or `Broken` with the phase it broke in. Before the phase
`sending` no byte of the request has left; from it on nobody may assume that none arrived."""

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPException
from types import TracebackType
from typing import Any, Final, Literal, Self

import requests
from requests import exceptions
from urllib3.exceptions import HTTPError, NameResolutionError

from catalog.providers.flight import Departure, Flight, FlightAdapter
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
_SESSIONS_PER_THREAD = 32
_HEADERS: Final = {"User-Agent": "frameyard", "Accept": "application/json", "Accept-Encoding": "identity"}
_PLAIN_PATH = re.compile(r"(/[A-Za-z0-9_~-]+)+")  # which nothing needs to be done with
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
    """Calls to one channel. Sessions are kept per thread and never carry a credential or a cookie over."""

    def __init__(
        self, access: ChannelAccess, limits: Limits | None = None, ca_file: str | None = None
    ) -> None:
        self.access = access
        self.limits = limits or Limits()
        self._verify: bool | str = ca_file or True

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
        session = _kept.session_of("")
        try:
            return self._call(session, "POST", path, headers, body=body, before_send=before_send)
        finally:
            session.close()  # its connection; it can be used again

    def ask(
        self,
        method: Literal["GET", "DELETE"],
        path: str,
        headers: Mapping[str, str],
        params: Iterable[tuple[str, str]] = (),
    ) -> Exchange:
        """Over a kept connection: for calls that may be repeated."""
        session = _kept.session_of(self.access.base_url)
        return self._call(session, method, path, headers, params=list(params))

    def _call(
        self,
        session: requests.Session,
        method: str,
        path: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        params: list[tuple[str, str]] | None = None,
        before_send: Callable[[], None] | None = None,
    ) -> Exchange:
        url = self.access.base_url.rstrip("/") + path
        with Flight(self.limits.deadline_s, before_send, self.limits.departure_s) as flight:
            FlightAdapter.board(session, flight)
            try:
                request = _prepared(method, self.access.base_url, path, params, headers, body)
                # Not by the session itself: it looks for cookies, hooks and redirects, and we want none.
                with session.get_adapter(url).send(
                    request,
                    timeout=(self.limits.connect_timeout_s, self.limits.read_timeout_s),
                    stream=True,
                    verify=self._verify,
                ) as response:
                    return self._read(response, flight)
            except SendForbidden as error:
                return Broken("connecting", "forbidden", str(error))
            except (exceptions.RequestException, HTTPError, HTTPException, OSError, Departure) as error:
                return self._broken(flight, _kind_of(error, flight, url), error)
            except UnicodeError as error:  # a host or a header that can't be written
                return self._broken(flight, "unsendable", error)

    def _read(self, response: requests.Response, flight: Flight) -> Exchange:
        body = bytearray()
        for chunk in response.iter_content(_CHUNK_BYTES):
            body += chunk
            if len(body) > self.limits.max_response_bytes:
                return Broken("body", "too_large", f"more than {len(body) - 1} bytes", response.status_code)
        if flight.land():
            return Answer(response.status_code, response.headers, self._without_credential(bytes(body)))
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
    if isinstance(error, exceptions.ContentDecodingError):
        return "encoding"
    # A write that times out is no `Timeout`, a stalled body no `ReadTimeout`.
    return "timeout" if any(isinstance(cause, TimeoutError) for cause in _causes(error)) else "broken"


def _kind_of_connecting(error: Exception, flight: Flight, url: str) -> BreakKind:
    if flight.reached and url.casefold().startswith("https:"):
        return "tls"  # a handshake that hangs or is reset looks like a read timeout or a reset
    if any(isinstance(cause, NameResolutionError) for cause in _causes(error)):
        return "dns"
    if isinstance(error, exceptions.ConnectionError | OSError) and not isinstance(error, ValueError):
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


def _prepared(
    method: str,
    base_url: str,
    path: str,
    params: list[tuple[str, str]] | None,
    headers: Mapping[str, str],
    body: bytes | None,
) -> requests.PreparedRequest:
    """Without what a session would merge into it: no cookie, and nothing that ~/.netrc or a proxy of this
    machine says."""
    request = requests.PreparedRequest()
    request.method = method
    if params or not _PLAIN_PATH.fullmatch(path):
        request.prepare_url(base_url.rstrip("/") + path, params)
    else:
        request.url = _prepared_place(base_url) + path
    request.prepare_headers({**_HEADERS, **headers})
    request.prepare_body(body, None)
    return request


@lru_cache(maxsize=256)
def _prepared_place(base_url: str) -> str:
    """As requests writes it; it takes as long for an address as for all headers."""
    request = requests.PreparedRequest()
    request.prepare_url(base_url, None)
    return str(request.url).rstrip("/")


def _new_session() -> requests.Session:
    session = requests.Session()
    session.adapters.clear()
    adapter = FlightAdapter()
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


class _Kept(threading.local):
    """The sessions of a thread by their place, with the connections that wait for its next call."""

    def __init__(self) -> None:
        self.sessions: OrderedDict[str, requests.Session] = OrderedDict()

    def session_of(self, place: str) -> requests.Session:
        session = self.sessions.get(place) or self.sessions.setdefault(place, _new_session())
        self.sessions.move_to_end(place)
        if len(self.sessions) > _SESSIONS_PER_THREAD:
            self.sessions.popitem(last=False)[1].close()
        return session


_kept = _Kept()
