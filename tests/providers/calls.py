"""How tests post over the wire, and what a broken call says."""

from collections.abc import Callable

from catalog.providers.http import Broken, Exchange, Limits
from tests.providers.conftest import CALM, CREDENTIAL, reply, transport

HEADERS = {"Authorization": f"Bearer {CREDENTIAL}"}
OK = reply(200, b'{"id":"task-1"}')
MANY_BYTES: dict[str, object] = {"content": "x" * 30_000_000}  # more than the buffers of both sides hold


def post(
    base_url: str,
    limits: Limits = CALM,
    document: dict[str, object] | None = None,
    before_send: Callable[[], None] | None = None,
    ca_file: str | None = None,
) -> Exchange:
    with transport(base_url, limits, ca_file) as client:
        return client.post_once("/tasks", document or {"model": "m"}, HEADERS, before_send)


def http(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def https(port: int) -> str:
    return f"https://127.0.0.1:{port}"


def broken(exchange: Exchange) -> tuple[str, str]:
    assert isinstance(exchange, Broken), exchange
    return exchange.phase, exchange.kind
