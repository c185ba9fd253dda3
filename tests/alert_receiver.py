"""The webhook endpoint of an installation's operators, on loopback."""

import base64
import hmac
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


@dataclass
class Receiver:
    """Answers `status` and keeps what it was sent."""

    url: str = ""
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(content) for _, content in self.received]


def signature_of(headers: Mapping[str, str], content: bytes) -> str:
    """The one that the headers must carry, computed from the published rule alone."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + content
    return f"v1,{base64.b64encode(hmac.digest(KEY, signed, 'sha256')).decode()}"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    kept = Receiver()

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            kept.received.append(({name.lower(): value for name, value in self.headers.items()}, content))
            self.send_response(kept.status)
            for name, value in kept.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Tests print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_port}/alerts"
    settings.ALERT_WEBHOOK_URL, settings.ALERT_WEBHOOK_SECRET = kept.url, SECRET
    settings.PUBLIC_URL = "https://frameyard.example/"
    yield kept
    server.shutdown()
    server.server_close()
    thread.join()
