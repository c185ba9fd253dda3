"""How far a call came, in every way that a network or a server can fail it.

`connecting` proves that nothing was sent; nothing else does."""

import gzip
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.providers.http import Answer, Broken, Exchange, Limits
from catalog.providers.types import SendForbidden
from tests.providers.conftest import (
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

HEADERS = {"Authorization": f"Bearer {CREDENTIAL}"}
OK = reply(200, b'{"id":"task-1"}')
MANY_BYTES: dict[str, object] = {"content": "x" * 30_000_000}  # more than the buffers of both sides hold


def post(
    base_url: str,
    limits: Limits = QUICK,
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


# --- nothing was sent --------------------------------------------------------------------------------


def test_a_host_without_an_address_was_sent_nothing() -> None:
    assert broken(post("http://frameyard.invalid")) == ("connecting", "dns")


def test_a_refused_connection_was_sent_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert broken(post(http(port))) == ("connecting", "connect")


def test_a_connection_that_does_not_come_about_in_time_was_sent_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        assert broken(post(http(full.getsockname()[1]))) == ("connecting", "connect")
        for each in waiting:
            each.close()


@pytest.mark.parametrize(
    "base_url",
    ["http://[::1", "http://exa mple", "ftp://127.0.0.1", "http://" + "a" * 300, "http://\udcff.example"],
)
def test_an_address_that_is_none_was_sent_nothing(base_url: str) -> None:
    assert broken(post(base_url)) == ("connecting", "unsendable")


@pytest.mark.parametrize("credential", ["a\nb", "钥匙"])
def test_a_credential_that_no_header_can_hold_was_sent_nothing(serve: Serve, credential: str) -> None:
    with transport(http(serve(replying(OK)))) as client:
        exchange = client.post_once("/tasks", {}, {"Authorization": f"Bearer {credential}"})
    assert broken(exchange) == ("connecting", "unsendable")


def test_a_certificate_that_nobody_vouches_for_was_sent_nothing(
    serve: Serve, over_tls: Callable[[Behaviour], Behaviour]
) -> None:
    assert broken(post(https(serve(over_tls(replying(OK)))))) == ("connecting", "tls")


def test_a_certificate_of_another_name_was_sent_nothing(
    serve: Serve, over_tls: Callable[[Behaviour], Behaviour], certificate: Path
) -> None:
    port = serve(over_tls(replying(OK)))
    assert broken(post(f"https://localhost:{port}", ca_file=str(certificate))) == ("connecting", "tls")


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(lambda connection: connection.recv(1), id="closed"),
        pytest.param(lambda connection: (connection.recv(1), reset(connection)), id="reset"),
        pytest.param(lambda _: time.sleep(3), id="silent"),
        pytest.param(lambda connection: (connection.recv(1000), connection.sendall(OK)), id="no_tls_at_all"),
    ],
)
def test_a_tls_handshake_that_fails_was_sent_nothing(serve: Serve, behaviour: Behaviour) -> None:
    assert broken(post(https(serve(behaviour)))) == ("connecting", "tls")


def test_a_handshake_that_drips_ends_at_the_deadline_and_was_sent_nothing(serve: Serve) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")  # a long message of the handshake begins
        for _ in range(100):
            connection.sendall(b"\x00")
            time.sleep(0.1)

    begun = time.monotonic()
    assert broken(post(https(serve(drip)), Limits(deadline_s=0.8))) == ("connecting", "deadline")
    assert time.monotonic() - begun < 2


# --- the caller's last word --------------------------------------------------------------------------


def test_the_caller_is_asked_on_the_standing_connection_before_the_first_byte(serve: Serve) -> None:
    received: list[bytes] = []
    accepted, finished = threading.Event(), threading.Event()

    def behaviour(connection: socket.socket) -> None:
        accepted.set()
        received.append(connection.recv(10))
        finished.set()

    def forbid() -> None:
        assert accepted.wait(2), "the connection stands before the question"
        raise SendForbidden("the lease ran out")

    exchange = post(http(serve(behaviour)), before_send=forbid)
    assert exchange == Broken("connecting", "forbidden", "the lease ran out")
    assert finished.wait(2)
    assert received == [b""]


def test_the_caller_is_asked_once(serve: Serve) -> None:
    asked: list[int] = []
    assert isinstance(post(http(serve(replying(OK))), before_send=lambda: asked.append(1)), Answer)
    assert asked == [1]


def test_what_the_caller_raises_besides_comes_out_as_it_is(serve: Serve) -> None:
    def fail() -> None:
        raise LookupError("the database is gone")

    with pytest.raises(LookupError, match="the database is gone"):
        post(http(serve(replying(OK))), before_send=fail)


def test_a_deadline_that_passes_while_the_caller_is_asked_keeps_the_request_here(serve: Serve) -> None:
    received: list[bytes] = []
    finished = threading.Event()

    def behaviour(connection: socket.socket) -> None:
        received.append(connection.recv(10))
        finished.set()

    exchange = post(http(serve(behaviour)), Limits(deadline_s=0.2), before_send=lambda: time.sleep(0.4))
    assert broken(exchange) == ("connecting", "deadline")
    assert finished.wait(2)
    assert received == [b""]


def test_a_process_that_was_stopped_after_it_was_allowed_to_send_sends_nothing(serve: Serve) -> None:
    received: list[bytes] = []
    finished = threading.Event()

    def behaviour(connection: socket.socket) -> None:
        received.append(connection.recv(10))
        finished.set()

    limits = Limits(deadline_s=5, departure_s=0.2)
    exchange = post(http(serve(behaviour)), limits, before_send=lambda: time.sleep(0.3))
    assert broken(exchange) == ("connecting", "forbidden")
    assert finished.wait(2)
    assert received == [b""]


# --- perhaps it was sent -----------------------------------------------------------------------------


def test_a_reset_while_the_body_is_written_may_have_been_sent(serve: Serve) -> None:
    def behaviour(connection: socket.socket) -> None:
        connection.recv(1000)
        reset(connection)

    assert broken(post(http(serve(behaviour)), document=MANY_BYTES)) == ("sending", "broken")


def test_a_write_that_times_out_may_have_been_sent(serve: Serve) -> None:
    exchange = post(http(serve(lambda _: time.sleep(4))), document=MANY_BYTES)
    assert broken(exchange) == ("sending", "timeout")


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        pytest.param(read_request, "broken", id="closed_without_an_answer"),
        pytest.param(lambda connection: (read_request(connection), reset(connection)), "broken", id="reset"),
        pytest.param(lambda connection: (read_request(connection), time.sleep(3)), "timeout", id="silent"),
        pytest.param(replying(b"220 smtp.example ready\r\n\r\n"), "broken", id="no_http"),
        pytest.param(replying(b"HTTP/1.1 200 " + b"x" * 70_000 + b"\r\n\r\n"), "broken", id="a_long_line"),
        pytest.param(
            replying(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n"), "broken", id="many_headers"
        ),
    ],
)
def test_an_answer_that_does_not_come_may_have_been_sent(
    serve: Serve, behaviour: Behaviour, kind: str
) -> None:
    exchange = post(http(serve(behaviour)))
    assert broken(exchange) == ("awaiting", kind)
    assert isinstance(exchange, Broken)
    assert exchange.status is None


def test_a_reset_at_accept_was_sent_nothing_only_if_it_came_before_the_first_byte(serve: Serve) -> None:
    """Whether the kernel took the bytes before the reset is a race; whether anybody asked to send is none."""
    asked: list[int] = []
    phase, kind = broken(post(http(serve(reset)), before_send=lambda: asked.append(1)))
    assert (phase, kind, asked) in (
        ("connecting", "connect", []),
        ("sending", "broken", [1]),
        ("awaiting", "broken", [1]),
    )


def test_headers_that_drip_end_at_the_deadline_though_they_look_like_a_whole_answer(serve: Serve) -> None:
    def drip(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for _ in range(100):
            connection.sendall(b"A: b\r\n")
            time.sleep(0.1)

    begun = time.monotonic()
    exchange = post(http(serve(drip)), Limits(read_timeout_s=0.4, deadline_s=0.8))
    assert broken(exchange) == ("awaiting", "deadline")
    assert time.monotonic() - begun < 2


# --- the status is known, the body is not ------------------------------------------------------------


def with_body(body: bytes, headers: str = "Content-Length: 100\r\n") -> Behaviour:
    def behaviour(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode() + body)

    return behaviour


def then_reset(connection: socket.socket) -> None:
    with_body(b'{"id":')(connection)
    time.sleep(0.1)
    reset(connection)


def then_silence(connection: socket.socket) -> None:
    with_body(b'{"id":')(connection)
    time.sleep(3)


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
    exchange = post(http(serve(behaviour)))
    assert broken(exchange) == ("body", kind)
    assert isinstance(exchange, Broken)
    assert exchange.status == 200


def drip_body(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.1)


def test_a_body_that_drips_ends_at_the_deadline(serve: Serve) -> None:
    begun = time.monotonic()
    exchange = post(http(serve(drip_body)), Limits(read_timeout_s=0.4, deadline_s=0.8))
    assert broken(exchange) == ("body", "deadline")
    assert time.monotonic() - begun < 2


def test_a_body_that_drips_over_tls_ends_at_the_deadline(
    serve: Serve, over_tls: Callable[[Behaviour], Behaviour], certificate: Path
) -> None:
    begun = time.monotonic()
    limits = Limits(read_timeout_s=0.4, deadline_s=0.8)
    exchange = post(https(serve(over_tls(drip_body))), limits, ca_file=str(certificate))
    assert broken(exchange) == ("body", "deadline")
    assert time.monotonic() - begun < 2


# --- whole answers -----------------------------------------------------------------------------------


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
            assert closed.acquire(timeout=2)


def test_each_thread_has_connections_of_its_own(serve: Serve) -> None:
    connections: list[int] = []
    together = threading.Barrier(4)

    def behaviour(connection: socket.socket) -> None:
        connections.append(1)
        replying(OK)(connection)

    base_url = http(serve(behaviour))

    def ask() -> None:
        with transport(base_url) as client:
            together.wait(5)
            for _ in range(5):
                assert isinstance(client.ask("GET", "/tasks/1", HEADERS), Answer)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(connections) == 4


def test_the_credential_is_taken_out_of_what_a_server_repeats(serve: Serve) -> None:
    exchange = post(http(serve(replying(reply(401, f'{{"key":"{CREDENTIAL}"}}'.encode())))))
    assert isinstance(exchange, Answer)
    assert exchange.body == b'{"key":"..."}'
    assert CREDENTIAL not in repr(transport("http://127.0.0.1").access)
