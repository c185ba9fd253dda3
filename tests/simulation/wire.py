"""The network within the process: sockets whose other side is a function, under the real HTTP clients.

urllib3, requests, http.client, the flight's phases and deadlines run as they are; only connecting, sending
and receiving are the simulation's. Time that a slow answer takes passes on the scheduler's clock."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.db import connections

from catalog.simulator.wire import Answer, spoiled
from tests.simulation.scheduler import Scheduler

_FLOOD_BYTES = 64 * 1024
_FOR_EVER_S = 1_000.0  # longer than any deadline, or one is missing


@dataclass(frozen=True, slots=True)
class Delivered:
    """What comes back: `content`, then how the connection goes on."""

    content: bytes
    then: str = "close"  # or reset, hang, drip, flood
    after_s: float = 0


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    secure: bool


class Network:
    """`answer` is the other side; `weather` is asked at each step and may break the connection."""

    def __init__(
        self, scheduler: Scheduler, answer: Callable[[Sent], Answer], weather: Callable[[str, str], None]
    ) -> None:
        self.scheduler, self.answer, self.weather = scheduler, answer, weather
        self.called_in_transaction: list[str] = []

    def connect(self, address: tuple[str, int], timeout: Any = None, *_: Any, **__: Any) -> "Wire":
        host = f"{address[0]}:{address[1]}"
        self.scheduler.point("connect", host)
        if self.scheduler.current and connections["default"].in_atomic_block:
            self.called_in_transaction.append(host)
        self.weather("connect", host)
        wire = Wire(self, secure=address[1] == 443)
        if isinstance(timeout, int | float):
            wire.settimeout(timeout)
        return wire

    def secured(self, wire: Any) -> Any:
        """The TLS handshake."""
        self.scheduler.point("handshake")
        self.weather("handshake", "")
        return wire


class Wire(socket.socket):
    """One end of a connection; the other end is `network.answer`."""

    def __init__(self, network: Network, secure: bool) -> None:
        ours, theirs = socket.socketpair()
        theirs.close()  # so that a kept connection is never taken for a live one
        super().__init__(fileno=ours.detach())
        self._network, self._secure = network, secure
        self._fired = self._timers_fired()
        self._request = bytearray()
        self._reply: bytes | None = None
        self._then = ""

    def sendall(self, data: Any, flags: int = 0) -> None:  # type: ignore[override]
        self._network.scheduler.point("send")
        if self._is_cut():
            raise BrokenPipeError(32, "Broken pipe")
        self._request += bytes(data)
        self._network.weather("send", "")

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:  # type: ignore[override]
        if self._is_cut():
            return 0
        if self._reply is None:
            self._exchange()
        assert self._reply is not None
        if not self._reply:
            return self._end(buffer)
        size = min(len(buffer), len(self._reply))
        buffer[:size] = self._reply[:size]
        self._reply = self._reply[size:]
        return size

    def _exchange(self) -> None:
        scheduler = self._network.scheduler
        delivered = delivered_as(self._network.answer(_read(bytes(self._request), self._secure)))
        scheduler.point("answered")
        self._network.weather("answered", "")
        if delivered.after_s:
            self._sit(delivered.after_s)
        self._reply, self._then = delivered.content, delivered.then
        if self._then == "drip":
            # A byte a second: the deadline comes long before the end, so one wait stands for all of them.
            self._reply = self._reply[:1]
            self._then = "hang_by_drips"

    def _timers_fired(self) -> int:
        worker = self._network.scheduler.current
        return worker.fired if worker else 0

    def _is_cut(self) -> bool:
        """Whether a watchdog's time has come since: it shut this connection down."""
        return self._timers_fired() > self._fired

    def _end(self, buffer: Any) -> int:
        match self._then:
            case "reset":
                raise ConnectionResetError(104, "Connection reset by peer")
            case "hang":
                self._sit(_FOR_EVER_S)
            case "hang_by_drips":
                self._network.scheduler.wait(_FOR_EVER_S)
            case "flood":
                size = min(len(buffer), _FLOOD_BYTES)
                buffer[:size] = b" " * size
                return size
        return 0

    def _sit(self, seconds: float) -> None:
        """Nothing comes for so long: the socket's own timeout ends it, or the deadline shuts it down."""
        timeout = self.gettimeout()
        self._network.scheduler.wait(seconds if timeout is None else min(seconds, timeout))
        if self._is_cut():
            self._reply, self._then = b"", "close"
        elif timeout is not None and seconds >= timeout:
            raise TimeoutError("timed out")


def _read(request: bytes, secure: bool) -> Sent:
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.casefold(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Sent(method, target, headers, body, secure)


def delivered_as(answer: Answer) -> Delivered:
    """The bytes of an answer, and what broken servers and networks do to them."""
    body = spoiled(answer.delivery, answer.body)
    whole = _head(answer, len(body)) + body
    half = _head(answer, len(body)) + body[: len(body) // 2]
    match answer.delivery:
        case "drop_before_response" | "drop_after_acceptance":
            return Delivered(b"", "close", answer.latency_s)
        case "reset_before_response" | "reset_after_acceptance":
            return Delivered(b"", "reset", answer.latency_s)
        case "hang":
            return Delivered(b"", "hang")
        case "garbage":
            return Delivered(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        case "truncated":
            return Delivered(half)
        case "reset_in_body":
            return Delivered(half, "reset")
        case "slow" | "slow_headers":
            return Delivered(whole, "drip")
        case "endless" | "too_large":
            length = 2 * 1024**3 if answer.delivery == "too_large" else None
            return Delivered(_head(answer, length) + answer.body, "flood")
        case _:
            return Delivered(whole, "close", answer.latency_s)


def _head(answer: Answer, length: int | None) -> bytes:
    known = answer.status in HTTPStatus._value2member_map_
    headers = dict(answer.headers)
    if length is not None and answer.status != HTTPStatus.NO_CONTENT:
        headers["Content-Length"] = str(length)
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase if known else 'Odd'}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
