"""Connections to an address that was judged before, and a deadline that no drip of bytes can stretch.

The name is resolved once; the socket goes to the checked address while SNI, certificate check and Host
keep the name. A resolver that answers something else a moment later is never asked again."""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection

from catalog.providers.flight import Flight
from dispatch.outputs.addresses import Target

Resolve = Callable[[str, int], list[str]]


class DeadlinePassed(OSError):
    """The whole journey took longer than it may."""


class Deadline(Flight):
    """The watchdog of provider calls over a whole journey: names, connections, redirects, body.

    A connection that it cut looks like a complete answer: ask `remaining_s` before believing an end.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self._ends_at = time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._ends_at

    def remaining_s(self) -> float:
        """Seconds left, above zero; raises DeadlinePassed."""
        if self.passed:
            raise DeadlinePassed("the deadline of the whole journey has passed")
        return self._ends_at - time.monotonic()


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
        self._deadline.take(plain)
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
