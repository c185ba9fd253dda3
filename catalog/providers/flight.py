"""Watches one request on its way through urllib3: how far it is, and that it ends in time.

urllib3's exceptions alone cannot tell whether a byte was sent: a TLS handshake that hangs looks like an
answer that does not come. So the connection itself records the phase, and connects before it sends."""

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import BaseHTTPResponse
from urllib3.util.ssl_ import create_urllib3_context

from catalog.providers.types import Phase, SendForbidden
from catalog.providers.watchdog import watchdog

# Goes on while this process or the whole machine is stopped, and knows no steps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _now_s() -> float:
    return time.clock_gettime(_CLOCK)


class Departure(Exception):
    """The deadline passed: what of the request has not been written stays here."""


class Flight:
    """One request. A watchdog shuts its socket down at the deadline, whatever it is doing then:
    timeouts of sockets are per read, and a byte a second passes them for ever.

    A process that was stopped goes on before its watchdog does, so each piece of the request is written
    only after a look at the clock."""

    def __init__(
        self,
        deadline_s: float,
        before_send: Callable[[], None] | None = None,
        departure_s: float = float("inf"),
    ) -> None:
        self.phase: Phase = "connecting"
        self.status: int | None = None
        self.reached = False  # the connection stands, TLS perhaps not yet
        self.cut_off = False  # while the request was being written
        self.expired = False
        self._landed = False
        self._before_send = before_send
        self._ends_at_s = _now_s() + deadline_s
        self._departure_s = departure_s
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._deadline_s = deadline_s
        self._alarm: int | None = None

    def __enter__(self) -> Self:
        self._alarm = watchdog().ring_in(self._deadline_s, self._expire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._alarm is not None:
            watchdog().call_off(self._alarm)
        self._watch(None)

    def take(self, connection: socket.socket) -> None:
        """Watches a socket by a descriptor of its own: TLS takes the original one away from its object."""
        self.reached = True
        self._watch(socket.socket(fileno=os.dup(connection.fileno())))

    def depart(self) -> None:
        """Before the first byte: the caller's last word, and the clock's."""
        asked_at_s = _now_s()
        if self._before_send is not None:
            self._before_send()
        self.go_on()
        if _now_s() >= asked_at_s + self._departure_s:
            raise SendForbidden("too long after the caller allowed it: this process was stopped in between")
        self.phase = "sending"

    def go_on(self) -> None:
        """Before each piece of the request."""
        if self.expired or _now_s() >= self._ends_at_s:
            self.expired = True
            raise Departure("the deadline passed before everything was sent")

    def land(self) -> bool:
        """True when the whole response came before the deadline."""
        with self._lock:
            self._landed = True
            return not self.expired

    def _watch(self, watched: socket.socket | None) -> None:
        with self._lock:
            before, self._socket = self._socket, watched
            if self.expired and watched is not None:
                _shut_down(watched)
        if before is not None:
            before.close()

    def _expire(self) -> None:
        with self._lock:
            if self._landed:
                return
            self.expired = True
            if self._socket is not None:
                _shut_down(self._socket)


def _shut_down(watched: socket.socket) -> None:
    try:
        watched.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster


class _Seat:
    """Holds the flight of the request that a session is making: one at a time, in one thread."""

    def __init__(self) -> None:
        self.flight = Flight(0)


class _Watched:
    """The part of a connection that records the phase. Mixed into urllib3's two connections."""

    sock: Any
    _seat: _Seat

    def __init__(self, *args: Any, seat: _Seat, **values: Any) -> None:
        self._seat = seat
        super().__init__(*args, **values)

    def _new_conn(self) -> socket.socket:
        connection: socket.socket = super()._new_conn()  # type: ignore[misc]
        self._seat.flight.take(connection)
        return connection

    def send(self, data: Any) -> None:
        flight = self._seat.flight
        if self.sock is None:
            self.connect()  # type: ignore[attr-defined]
        if flight.phase == "connecting":
            if not flight.reached:
                flight.take(self.sock)  # a kept connection
            flight.depart()
        else:
            flight.go_on()
        try:
            super().send(data)  # type: ignore[misc]
        except OSError:
            flight.cut_off = True  # urllib3 goes on after a broken pipe: an answer may have come before it
            raise

    def getresponse(self) -> BaseHTTPResponse:
        flight = self._seat.flight
        if not flight.cut_off:
            flight.phase = "awaiting"
        response: BaseHTTPResponse = super().getresponse()  # type: ignore[misc]
        if not flight.expired:  # else the headers broke off, though what came of them looks whole
            flight.phase, flight.status = "body", response.status
        return response


class _HTTPConnection(_Watched, HTTPConnection):  # type: ignore[misc]
    pass


class _HTTPSConnection(_Watched, HTTPSConnection):  # type: ignore[misc]
    pass


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _HTTPConnection


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection


class FlightAdapter(HTTPAdapter):
    """A requests adapter whose connections know the flight of the call that uses them."""

    def __init__(self) -> None:
        self.seat = _Seat()
        self._place: tuple[str, str, Any] | None = None  # of the pool, while it is open
        self._pool: Any = None
        super().__init__(pool_connections=1, pool_maxsize=1, max_retries=0)

    @staticmethod
    def board(session: requests.Session, flight: Flight) -> None:
        for adapter in session.adapters.values():
            if isinstance(adapter, FlightAdapter):
                adapter.seat.flight = flight

    def init_poolmanager(self, *args: Any, **values: Any) -> None:
        super().init_poolmanager(*args, **values)
        self.poolmanager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}

    def get_connection_with_tls_context(
        self, request: requests.PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> Any:
        """The pool that the last call had, if this one goes to the same place: to find it takes its time."""
        parts = urlsplit(str(request.url))
        place = (parts.scheme, parts.netloc, verify)
        if self._place != place:
            pool: Any = super().get_connection_with_tls_context(request, verify, proxies, cert)
            pool.conn_kw["seat"] = self.seat
            self._place, self._pool = place, pool
        return self._pool

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """There is no proxy, which requests looks for twice."""
        return request.path_url

    def close(self) -> None:
        self._place = self._pool = None
        super().close()

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """One context for all calls: to read the authorities takes longer than a handshake."""
        super().cert_verify(conn, url, verify, cert)
        if conn.ca_certs is not None:
            conn.conn_kw["ssl_context"], conn.ca_certs = _trusting(conn.ca_certs), None


@lru_cache(maxsize=8)
def _trusting(ca_file: str) -> ssl.SSLContext:
    context = create_urllib3_context()
    context.load_verify_locations(ca_file)
    return context
