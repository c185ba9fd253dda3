"""Watches one request on its way through urllib3: how far it is, and that it ends in time.

urllib3's exceptions alone cannot tell whether a byte was sent: a TLS handshake that hangs looks like an
answer that does not come. So the connection itself records the phase, and connects before it sends."""

import errno
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import certifi
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse
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
        self.has_asked = False  # the caller, for its last word
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
        self.has_asked = True
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


class _Watched:
    """The part of a connection that records the phase. Mixed into urllib3's two connections, which make one
    call at a time, each with a flight of its own."""

    sock: Any
    timeout: float
    flight: Flight

    def _new_conn(self) -> socket.socket:
        connection: socket.socket = super()._new_conn()  # type: ignore[misc]
        self.flight.take(connection)
        return connection

    def send(self, data: Any) -> None:
        flight = self.flight
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
            flight.cut_off = True  # an answer may have come before it broke, and is looked for
            raise

    def getresponse(self) -> HTTPResponse:
        flight = self.flight
        if not flight.cut_off:
            flight.phase = "awaiting"
        response: HTTPResponse = super().getresponse()  # type: ignore[misc]
        if not flight.expired:  # else the headers broke off, though what came of them looks whole
            flight.phase, flight.status = "body", response.status
        return response

    def call(
        self,
        flight: Flight,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> HTTPResponse:
        """The response as far as its headers. Raises what urllib3, http.client and the socket raise."""
        self.flight, self.timeout = flight, connect_timeout_s
        if self.sock is not None and not self.is_connected:  # type: ignore[attr-defined]
            self.close()  # type: ignore[attr-defined]  # a kept one that the other side has closed
        try:
            self.request(method, target, body, headers, preload_content=False)  # type: ignore[attr-defined]
        except OSError as error:
            if error.errno not in _BROKE_WHILE_SENDING or not flight.cut_off:
                raise
        self.timeout = read_timeout_s
        return self.getresponse()


_BROKE_WHILE_SENDING = (errno.EPIPE, errno.EPROTOTYPE, errno.ECONNRESET)


class _HTTPConnection(_Watched, HTTPConnection):  # type: ignore[misc]
    pass


class _HTTPSConnection(_Watched, HTTPSConnection):  # type: ignore[misc]
    pass


type Connection = _HTTPConnection | _HTTPSConnection


def connection_to(scheme: str, host: str, port: int | None, ca_file: str | None) -> Connection:
    """Not connected yet. `ca_file`: PEM; None: the authorities that `requests` brings."""
    if scheme == "https":
        return _HTTPSConnection(host, port, ssl_context=_trusting(ca_file or certifi.where()))
    return _HTTPConnection(host, port)


@lru_cache(maxsize=8)
def _trusting(ca_file: str) -> ssl.SSLContext:
    """Reading the authorities takes longer than a handshake: once for each file."""
    context = create_urllib3_context()
    context.load_verify_locations(ca_file)
    return context
