"""Connections to an address that was judged before, and a deadline that no drip of bytes can stretch.

The name is resolved once; the socket goes to the checked address while SNI, certificate check and Host
keep the name. A resolver that answers something else a moment later is never asked again."""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from types import TracebackType
from typing import Self

from dispatch.outputs.addresses import Target

Resolve = Callable[[str, int], list[str]]


class DeadlinePassed(OSError):
    """The whole exchange took longer than it may."""


class Deadline:
    """Cuts the watched socket when the time is up.

    Timeouts of sockets are per read, so one byte now and then would hold a worker for ever. A cut connection
    looks like a complete answer to `http.client`: look at `passed` before believing an end of data.
    """

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds
        self._timer = threading.Timer(max(seconds, 0), self._cut)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._watched: socket.socket | None = None

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._forget()

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._ends_at

    def remaining_s(self) -> float:
        """Seconds left, above zero; raises DeadlinePassed."""
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise DeadlinePassed("the deadline of the whole exchange has passed")
        return left

    def watch(self, connected: socket.socket) -> None:
        """Takes a duplicate: TLS takes the original socket's descriptor away from it."""
        self._forget()
        with self._lock:
            self._watched = connected.dup()
        if self.passed:
            self._cut()

    def _cut(self) -> None:
        with self._lock:
            if self._watched is not None:
                _shut_down(self._watched)

    def _forget(self) -> None:
        with self._lock:
            if self._watched is not None:
                self._watched.close()
                self._watched = None


class PinnedConnection(HTTPConnection):
    """`http.client` towards `target`, connected to `address` and to nothing else."""

    def __init__(
        self,
        target: Target,
        address: str,
        deadline: Deadline,
        *,
        connect_timeout_s: float,
        tls: ssl.SSLContext,
    ) -> None:
        super().__init__(target.host, target.port, timeout=min(connect_timeout_s, deadline.remaining_s()))
        self._target = target
        self._address = address
        self._deadline = deadline
        self._tls = tls

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self._target.port), self.timeout)
        self._deadline.watch(plain)
        self.sock = plain
        if self._target.scheme == "https":
            self.sock = self._tls.wrap_socket(plain, server_hostname=self._target.host)


def system_addresses(host: str, port: int) -> list[str]:
    """Every A and AAAA record by the system's resolver, in its order; raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def resolve_within(resolve: Resolve, host: str, port: int, seconds: float) -> list[str]:
    """`resolve(host, port)`, bounded: getaddrinfo has no timeout of its own. Raises OSError."""
    answer: list[str] = []
    failure: list[OSError] = []

    def ask() -> None:
        try:
            answer.extend(resolve(host, port))
        except OSError as error:
            failure.append(error)

    asking = threading.Thread(target=ask, daemon=True, name="resolve")
    asking.start()
    asking.join(seconds)
    if asking.is_alive():
        raise TimeoutError("the resolver did not answer in time")
    if failure or not answer:
        raise failure[0] if failure else OSError("the name has no address")
    return answer


def _shut_down(watched: socket.socket) -> None:
    try:
        watched.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster
