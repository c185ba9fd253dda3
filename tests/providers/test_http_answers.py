"""What is made of an answer: a status whose body broke, and whole ones."""

import gzip
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from catalog.providers.http import Answer, Broken, Limits
from tests.providers.calls import HEADERS, OK, broken, http, https, post
from tests.providers.conftest import (
    CALM,
    CREDENTIAL,
    QUICK,
    Behaviour,
    Serve,
    read_request,
    reply,
    replying,
    reset,
    transport,
)


def with_body(body: bytes, headers: str = "Content-Length: 100\r\n") -> Behaviour:
    def behaviour(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode() + body)

    return behaviour


def then_reset(connection: socket.socket) -> None:
    with_body(b'{"id":')(connection)
    time.sleep(0.5)  # or the reset takes away what is not read yet
    reset(connection)


def then_silence(connection: socket.socket) -> None:
    with_body(b'{"id":')(connection)
    time.sleep(30)


GZIP = "Content-Encoding: gzip\r\n"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        pytest.param(with_body(b'{"id":'), "broken", id="shorter_than_announced"),
        pytest.param(with_body(b"40\r\n{", "Transfer-Encoding: chunked\r\n"), "broken", id="half_a_chunk"),
        pytest.param(then_reset, "broken", id="reset"),
        pytest.param(then_silence, "timeout", id="silent"),
        pytest.param(replying(reply(200, b"no gzip", GZIP)), "encoding", id="not_as_encoded"),
        pytest.param(replying(reply(200, b"x" * 100_001)), "too_large", id="too_large"),
        pytest.param(replying(reply(200, gzip.compress(bytes(20_000_000)), GZIP)), "too_large", id="a_bomb"),
    ],
)
def test_a_body_that_breaks_off_leaves_only_its_status(serve: Serve, behaviour: Behaviour, kind: str) -> None:
    exchange = post(http(serve(behaviour)), QUICK if kind == "timeout" else CALM)
    assert broken(exchange) == ("body", kind)
    assert isinstance(exchange, Broken)
    assert exchange.status == 200


def drip_body(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(600):
        connection.sendall(b" ")
        time.sleep(0.1)


def test_a_body_that_drips_ends_at_the_deadline(serve: Serve) -> None:
    begun = time.monotonic()
    exchange = post(http(serve(drip_body)), Limits(read_timeout_s=10, deadline_s=2))
    assert broken(exchange) == ("body", "deadline")
    assert time.monotonic() - begun < 30


def test_a_body_that_drips_over_tls_ends_at_the_deadline(
    serve: Serve, over_tls: Callable[[Behaviour], Behaviour], certificate: Path
) -> None:
    begun = time.monotonic()
    limits = Limits(read_timeout_s=10, deadline_s=2)
    exchange = post(https(serve(over_tls(drip_body))), limits, ca_file=str(certificate))
    assert broken(exchange) == ("body", "deadline")
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(serve: Serve, status: int) -> None:
    seen: list[bytes] = []
    elsewhere = serve(lambda connection: seen.append(connection.recv(1000)))
    answer = reply(status, b"", f"Location: http://127.0.0.1:{elsewhere}/\r\n")
    exchange = post(http(serve(replying(answer))))
    assert isinstance(exchange, Answer)
    assert exchange.status == status
    assert seen == []


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_a_post_is_made_once_whatever_is_answered(serve: Serve, status: int) -> None:
    seen: list[bytes] = []

    def behaviour(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        connection.sendall(reply(status, b"{}", "Retry-After: 0\r\n"))

    assert isinstance(post(http(serve(behaviour))), Answer)
    assert len(seen) == 1


def test_a_post_over_tls_is_answered(
    serve: Serve, over_tls: Callable[[Behaviour], Behaviour], certificate: Path
) -> None:
    exchange = post(https(serve(over_tls(replying(OK)))), ca_file=str(certificate))
    assert isinstance(exchange, Answer)
    assert exchange.body == b'{"id":"task-1"}'


def test_a_netrc_or_a_proxy_of_this_machine_changes_nothing(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []

    def behaviour(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        connection.sendall(OK)

    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert isinstance(post(http(serve(behaviour))), Answer)
    assert f"Authorization: Bearer {CREDENTIAL}".encode() in seen[0]


def test_a_cookie_of_one_account_is_not_sent_with_the_next_call(serve: Serve) -> None:
    seen: list[bytes] = []

    def behaviour(connection: socket.socket) -> None:
        while True:
            seen.append(read_request(connection))
            connection.sendall(reply(200, b"{}", "Set-Cookie: session=abc; Path=/\r\n"))

    with transport(http(serve(behaviour))) as client:
        for _ in range(2):
            assert isinstance(client.ask("GET", "/tasks/1", HEADERS), Answer)
    assert len(seen) == 2
    assert b"session=abc" not in seen[1]


def test_polls_keep_their_connection_and_posts_never_do(serve: Serve) -> None:
    connections: list[int] = []

    def behaviour(connection: socket.socket) -> None:
        connections.append(1)
        replying(OK)(connection)

    with transport(http(serve(behaviour))) as client:
        for _ in range(3):
            assert isinstance(client.ask("GET", "/tasks/1", HEADERS), Answer)
        assert len(connections) == 1
        for _ in range(2):
            assert isinstance(client.post_once("/tasks", {}, HEADERS), Answer)
        assert len(connections) == 3


def test_a_kept_connection_is_given_up_with_an_answer_that_was_not_read_to_its_end(serve: Serve) -> None:
    connections: list[int] = []

    def behaviour(connection: socket.socket) -> None:
        connections.append(1)
        content = b"x" * 5_000_000 if len(connections) == 1 else b'{"id":"task-1"}'
        replying(reply(200, content))(connection)

    with transport(http(serve(behaviour))) as client:
        assert broken(client.ask("GET", "/tasks/1", HEADERS)) == ("body", "too_large")
        answer = client.ask("GET", "/tasks/1", HEADERS)
    assert isinstance(answer, Answer)
    assert answer.body == b'{"id":"task-1"}'
    assert len(connections) == 2


def test_a_kept_connection_that_was_closed_meanwhile_is_replaced(serve: Serve) -> None:
    closed = threading.Semaphore(0)

    def once(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(OK)
        connection.close()
        closed.release()

    with transport(http(serve(once))) as client:
        for _ in range(3):
            assert isinstance(client.ask("GET", "/tasks/1", HEADERS), Answer)
            assert closed.acquire(timeout=60)


@pytest.mark.parametrize("base", ["", "/", "/api/v3", "/api/v3/"])
@pytest.mark.parametrize(
    "path", ["/tasks/cgt-1", "/tasks/a%2Fb", "/tasks/a.b", "/tasks/../x", "/任务", "/a?b=c"]
)
def test_an_address_is_written_as_requests_writes_it(serve: Serve, base: str, path: str) -> None:
    def first_line(connection: socket.socket) -> None:
        connection.sendall(reply(200, read_request(connection).split(b"\r\n")[0]))

    base_url = http(serve(first_line)) + base
    with transport(base_url) as client:
        exchange = client.ask("GET", path, HEADERS)
    assert isinstance(exchange, Answer), exchange
    assert exchange.body == requests.get(base_url.rstrip("/") + path, timeout=60).content


def test_each_thread_has_connections_of_its_own(serve: Serve) -> None:
    connections: list[int] = []
    together = threading.Barrier(4)

    def behaviour(connection: socket.socket) -> None:
        connections.append(1)
        replying(OK)(connection)

    base_url = http(serve(behaviour))

    def ask() -> None:
        with transport(base_url) as client:
            together.wait(60)
            for _ in range(5):
                assert isinstance(client.ask("GET", "/tasks/1", HEADERS), Answer)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(connections) == 4


def test_the_credential_is_taken_out_of_what_a_server_repeats(serve: Serve) -> None:
    exchange = post(http(serve(replying(reply(401, f'{{"key":"{CREDENTIAL}"}}'.encode())))))
    assert isinstance(exchange, Answer)
    assert exchange.body == b'{"key":"..."}'
    assert CREDENTIAL not in repr(transport("http://127.0.0.1").access)
