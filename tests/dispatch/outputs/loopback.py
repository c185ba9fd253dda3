"""A real HTTP server on loopback whose answers are written byte by byte by the test."""

import contextlib
import datetime
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CONTENT = bytes(range(256)) * 3000
OK = "HTTP/1.1 200 OK\r\n"


@dataclass(frozen=True)
class Request:
    """What one connection asked for; header names in lower case."""

    path: str
    headers: dict[str, str]


Answer = Callable[[socket.socket], None]


@dataclass
class Loopback:
    """`answers` by path; every request that arrived, and every name asked for in TLS."""

    port: int
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    server_names: list[str | None] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


def answering(*addresses: str) -> Callable[[str, int], list[str]]:
    """A resolver that knows one answer for every name."""
    return lambda _host, _port: list(addresses)


def body(
    content: bytes,
    content_type: str = "video/mp4",
    *,
    status: str = "200 OK",
    more: str = "",
    length: int | None = None,
) -> Answer:
    """A plain answer; `more` are header lines, `length` a Content-Length that need not be true."""
    announced = len(content) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {announced}\r\n{more}\r\n"
    return raw(head.encode() + content)


def raw(answer: bytes) -> Answer:
    return lambda connection: connection.sendall(answer)


def redirect(location: str, status: str = "302 Found") -> Answer:
    return raw(f"HTTP/1.1 {status}\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())


def endless(head: bytes, piece: bytes) -> Answer:
    """Sends `piece` until the other side has enough."""

    def send(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return send


def dripping(head: bytes, loopback: "Loopback", *, every_s: float = 0.02) -> Answer:
    """One byte now and then: each read is quick, the whole never ends."""

    def send(connection: socket.socket) -> None:
        connection.sendall(head)
        while not loopback.closing.wait(every_s):
            connection.sendall(b"x")

    return send


@contextlib.contextmanager
def serving(
    *, address: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[Loopback]:
    """A server for the length of the block."""

    class Handler(socketserver.StreamRequestHandler):
        def setup(self) -> None:
            if tls is not None:
                self.request = tls.wrap_socket(self.request, server_side=True)
            super().setup()

        def handle(self) -> None:
            request = _read_request(self.rfile.readline)
            if request is None:
                return
            loopback.requests.append(request)
            with contextlib.suppress(OSError):  # the client may hang up: that is often the point
                loopback.answers[request.path](self.request)

        def finish(self) -> None:
            with contextlib.suppress(OSError):
                super().finish()

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = False

        def handle_error(self, request: object, client_address: object) -> None:
            """A refused handshake is expected here, and seen by the client."""

    with Server((address, port), Handler) as server:
        loopback = Loopback(server.server_address[1])
        if tls is not None:
            tls.sni_callback = lambda *about: loopback.server_names.append(about[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield loopback
        finally:
            loopback.closing.set()
            server.shutdown()
            thread.join()


def certificate_for(host: str, folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context for `host`, and the file in which a client finds it trusted."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, secret = folder / "authority.pem", folder / "key.pem"
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, secret)
    return context, trusted


def _read_request(read_line: Callable[[], bytes]) -> Request | None:
    text: list[str] = []
    while (line := read_line()) not in (b"", b"\r\n"):
        text.append(line.decode("latin-1").rstrip("\r\n"))
    if not text or not line:
        return None  # hung up in the middle
    headers = dict(line.split(": ", 1) for line in text[1:])
    return Request(text[0].split(" ")[1], {name.lower(): value for name, value in headers.items()})
