"""What may have left this machine when a call breaks: nothing, or perhaps all; and who is asked before.

`connecting` proves that nothing was sent; nothing else does."""

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.providers.http import Answer, Broken, Limits
from catalog.providers.types import SendForbidden
from tests.providers.calls import MANY_BYTES, OK, broken, http, https, post
from tests.providers.conftest import CALM, QUICK, Behaviour, Serve, read_request, replying, reset, transport


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
        assert broken(post(http(full.getsockname()[1]), QUICK)) == ("connecting", "connect")
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
        pytest.param(lambda _: time.sleep(30), id="silent"),
        pytest.param(lambda connection: (connection.recv(1000), connection.sendall(OK)), id="no_tls_at_all"),
    ],
)
def test_a_tls_handshake_that_fails_was_sent_nothing(serve: Serve, behaviour: Behaviour) -> None:
    assert broken(post(https(serve(behaviour)), QUICK)) == ("connecting", "tls")


def test_a_handshake_that_drips_ends_at_the_deadline_and_was_sent_nothing(serve: Serve) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")  # a long message of the handshake begins
        for _ in range(600):
            connection.sendall(b"\x00")
            time.sleep(0.1)

    begun = time.monotonic()
    assert broken(post(https(serve(drip)), Limits(deadline_s=0.8))) == ("connecting", "deadline")
    assert time.monotonic() - begun < 30


def test_the_caller_is_asked_on_the_standing_connection_before_the_first_byte(serve: Serve) -> None:
    received: list[bytes] = []
    accepted, finished = threading.Event(), threading.Event()

    def behaviour(connection: socket.socket) -> None:
        accepted.set()
        received.append(connection.recv(10))
        finished.set()

    def forbid() -> None:
        assert accepted.wait(60), "the connection stands before the question"
        raise SendForbidden("the lease ran out")

    exchange = post(http(serve(behaviour)), before_send=forbid)
    assert exchange == Broken("connecting", "forbidden", "the lease ran out")
    assert finished.wait(60)
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
    assert finished.wait(60)
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
    assert finished.wait(60)
    assert received == [b""]


def test_a_reset_while_the_body_is_written_may_have_been_sent(serve: Serve) -> None:
    def behaviour(connection: socket.socket) -> None:
        connection.recv(1000)
        reset(connection)

    assert broken(post(http(serve(behaviour)), document=MANY_BYTES)) == ("sending", "broken")


def test_a_write_that_times_out_may_have_been_sent(serve: Serve) -> None:
    exchange = post(http(serve(lambda _: time.sleep(30))), QUICK, document=MANY_BYTES)
    assert broken(exchange) == ("sending", "timeout")


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        pytest.param(read_request, "broken", id="closed_without_an_answer"),
        pytest.param(lambda connection: (read_request(connection), reset(connection)), "broken", id="reset"),
        pytest.param(lambda connection: (read_request(connection), time.sleep(30)), "timeout", id="silent"),
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
    exchange = post(http(serve(behaviour)), QUICK if kind == "timeout" else CALM)
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
        for _ in range(600):
            connection.sendall(b"A: b\r\n")
            time.sleep(0.1)

    begun = time.monotonic()
    exchange = post(http(serve(drip)), Limits(read_timeout_s=10, deadline_s=2))
    assert broken(exchange) == ("awaiting", "deadline")
    assert time.monotonic() - begun < 30
