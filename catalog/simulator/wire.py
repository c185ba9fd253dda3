"""Puts an answer on the wire, or does to it what networks and broken servers do; no more than sockets."""

import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from catalog.simulator.scenario import DEEP_LEVELS, LONG_NUMBER_DIGITS

_DRIP_S = 0.2
_HANG_S = 600
_ENDLESS_CHUNK = b" " * 65536
_MOST_ENDLESS_BYTES = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Answer:
    """`delivery` is one of the scenario's answers or outputs; `whole` for most."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delivery: str = "whole"
    latency_s: float = 0


def spoiled(delivery: str, body: bytes) -> bytes:
    """The body as a broken server would write it, complete as far as HTTP can tell."""
    match delivery:
        case "empty":
            return b""
        case "not_json":
            return body[: len(body) // 2]
        case "html":
            return b"<html><body><h1>502 Bad Gateway</h1></body></html>"
        case "list":
            return b"[" + body + b"]"
        case "nan":
            return body[:-1] + b',"progress":NaN}'
        case "deep":
            return b'{"a":' * DEEP_LEVELS + b"1" + b"}" * DEEP_LEVELS
        case "long_number":
            return body[:-1] + b',"seed":' + b"9" * LONG_NUMBER_DIGITS + b"}"
        case "twice_a_key":
            return body[:-1] + b',"id":"another","id":"a third"}'
        case _:
            return body


def send(connection: socket.socket, answer: Answer, is_open: Callable[[], bool]) -> bool:
    """Writes the answer; False when the connection is not to be used again. `is_open`: the server runs."""
    if answer.latency_s:
        time.sleep(answer.latency_s)
    body = spoiled(answer.delivery, answer.body)
    head = _head(answer, len(body))
    match answer.delivery:
        case "drop_before_response" | "drop_after_acceptance":
            return False
        case "reset_before_response" | "reset_after_acceptance":
            return _reset(connection)
        case "hang":
            return _hang(connection, is_open)
        case "garbage":
            connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        case "truncated":
            connection.sendall(head + body[: len(body) // 2])
        case "reset_in_body":
            connection.sendall(head + body[: len(body) // 2])
            time.sleep(_DRIP_S)  # what was sent arrives before the reset overtakes it
            return _reset(connection)
        case "slow":
            connection.sendall(head)
            _drip(connection, body, is_open)
        case "slow_headers":
            _drip(connection, head + body, is_open)
        case "endless" | "too_large":
            _flood(connection, answer, is_open)
        case _:
            connection.sendall(head + body)
            return True
    return False


def _head(answer: Answer, length: int) -> bytes:
    reason = HTTPStatus(answer.status).phrase if answer.status in HTTPStatus._value2member_map_ else "Odd"
    headers = {"Content-Length": str(length), **answer.headers}
    if answer.status == HTTPStatus.NO_CONTENT:
        del headers["Content-Length"]
    lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _reset(connection: socket.socket) -> bool:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    return False


def _hang(connection: socket.socket, is_open: Callable[[], bool]) -> bool:
    """Until the client gives up."""
    until = time.monotonic() + _HANG_S
    while is_open() and time.monotonic() < until:
        readable, _, _ = select.select([connection], [], [], _DRIP_S)
        if readable:
            return False
    return False


def _drip(connection: socket.socket, content: bytes, is_open: Callable[[], bool]) -> None:
    for index in range(len(content)):
        if not is_open():
            return
        connection.sendall(content[index : index + 1])
        time.sleep(_DRIP_S)


def _flood(connection: socket.socket, answer: Answer, is_open: Callable[[], bool]) -> None:
    """More than anybody wants: announced with `too_large`, without a length otherwise."""
    announced = {"Content-Length": str(_MOST_ENDLESS_BYTES)} if answer.delivery == "too_large" else {}
    head = _head(Answer(answer.status, headers={**answer.headers, **announced}), 0)
    if not announced:
        head = head.replace(b"Content-Length: 0\r\n", b"")
    connection.sendall(head + answer.body)
    for _ in range(_MOST_ENDLESS_BYTES // len(_ENDLESS_CHUNK)):
        if not is_open():
            return
        connection.sendall(_ENDLESS_CHUNK)
