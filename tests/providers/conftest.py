"""Servers that misbehave on purpose, on this machine only."""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from catalog.providers.http import Limits, Transport
from catalog.providers.types import ChannelAccess
from catalog.simulator.scenario import Timing
from catalog.simulator.server import Simulator
from tests.factories import NOW

CREDENTIAL = "sk-canary-0123456789"
# Where nothing is to come.
QUICK = Limits(connect_timeout_s=1, read_timeout_s=1, deadline_s=5, max_response_bytes=100_000)
# Where an answer is to come: generous, for a machine that is busy with other things.
CALM = Limits(connect_timeout_s=10, read_timeout_s=10, deadline_s=20, max_response_bytes=100_000)

type Behaviour = Callable[[socket.socket], object]
type Serve = Callable[[Behaviour], int]


def access(base_url: str, provider: str = "ark", **config: object) -> ChannelAccess:
    return ChannelAccess("channel-1", provider, base_url, CREDENTIAL, config)


def transport(base_url: str, limits: Limits = CALM, ca_file: str | None = None) -> Transport:
    return Transport(access(base_url), limits, ca_file)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(behaviour)` runs it on each connection, in a thread, and answers the port."""
    listeners: list[socket.socket] = []

    def start(behaviour: Behaviour) -> int:
        listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        listeners.append(listener)
        threading.Thread(target=_accept, args=(listener, behaviour), daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in listeners:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _accept(listener: socket.socket, behaviour: Behaviour) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_run, args=(behaviour, connection), daemon=True).start()


def _run(behaviour: Behaviour, connection: socket.socket) -> None:
    with contextlib.suppress(OSError), connection:
        connection.settimeout(60)
        behaviour(connection)


def read_request(connection: socket.socket) -> bytes:
    """Head and body of one request."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    length = int(lengths[0].split(b":")[1]) if lengths else 0
    while len(body) < length:
        body += _some(connection)
    return head + b"\r\n\r\n" + body


def _some(connection: socket.socket) -> bytes:
    received = connection.recv(65536)
    if not received:
        raise ConnectionError("the client hung up")
    return received


def reset(connection: socket.socket) -> None:
    """Closes with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def reply(status: int, body: bytes, headers: str = "Content-Type: application/json\r\n") -> bytes:
    return b"HTTP/1.1 %d Said\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers.encode(), len(body), body)


def replying(answer: bytes) -> Behaviour:
    """Reads a request, then writes `answer`, again and again."""

    def behaviour(connection: socket.socket) -> None:
        while True:
            read_request(connection)
            connection.sendall(answer)

    return behaviour


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """Its time stands still but for `simulator.world.advance`."""
    with Simulator(timing=Timing(queue_s=1, run_s=3, jitter=0), clock=NOW.timestamp) as running:
        yield running


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and a certificate for 127.0.0.1, its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    begins_at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins_at)
        .not_valid_after(begins_at + datetime.timedelta(days=3))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def over_tls(certificate: Path) -> Callable[[Behaviour], Behaviour]:
    """Wraps a behaviour in TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def wrap(behaviour: Behaviour) -> Behaviour:
        return lambda connection: _behave_over_tls(context, connection, behaviour)

    return wrap


def _behave_over_tls(context: ssl.SSLContext, connection: socket.socket, behaviour: Behaviour) -> None:
    with context.wrap_socket(connection, server_side=True) as wrapped:
        behaviour(wrapped)
