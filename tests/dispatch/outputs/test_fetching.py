"""Downloads over real sockets: what is kept, what is refused, and that nothing outlasts its bounds."""

import dataclasses
import gzip
import hashlib
import time
from pathlib import Path

import pytest

from dispatch.outputs.addresses import Refusal
from dispatch.outputs.fetching import Failure, Fetched, FetchFailed, FetchRefused, fetch, keep
from dispatch.outputs.limits import FetchLimits
from tests.dispatch.outputs.loopback import (
    Loopback,
    answering,
    body,
    certificate_for,
    dripping,
    endless,
    raw,
    redirect,
    serving,
)

CONTENT = bytes(range(256)) * 3000
OK = "HTTP/1.1 200 OK\r\n"


def test_a_body_is_kept_with_its_size_hash_and_declared_type(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/a.mp4?sig=a%2Fb"] = body(CONTENT, "video/mp4")
    outcome = fetch(loopback.url("/a.mp4?sig=a%2Fb"), tmp_path, private_too)
    assert isinstance(outcome, Fetched)
    assert outcome.path.read_bytes() == CONTENT
    assert outcome.path.parent == tmp_path
    assert (outcome.size_bytes, outcome.declared_type) == (len(CONTENT), "video/mp4")
    assert outcome.sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_a_chunked_body_is_kept_whole(loopback: Loopback, private_too: FetchLimits, tmp_path: Path) -> None:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (CONTENT[:1000], CONTENT[1000:]))
    loopback.answers["/"] = raw(f"{OK}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n")
    outcome = fetch(loopback.url("/"), tmp_path, private_too)
    assert isinstance(outcome, Fetched)
    assert outcome.path.read_bytes() == CONTENT


def test_a_body_that_ends_with_the_connection_is_kept(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = raw(f"{OK}\r\n".encode() + CONTENT)
    outcome = fetch(loopback.url("/"), tmp_path, private_too)
    assert isinstance(outcome, Fetched)
    assert outcome.size_bytes == len(CONTENT)


def test_the_request_asks_for_no_compression_and_names_the_host(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = body(CONTENT)
    url = loopback.url("/", host="media.example")
    fetch(url, tmp_path, private_too, resolve=answering("127.0.0.1"))
    sent = loopback.requests[0].headers
    assert sent["host"] == f"media.example:{loopback.port}"
    assert sent["accept-encoding"] == "identity"
    assert "authorization" not in sent
    assert "cookie" not in sent


def test_a_locators_header_is_sent_but_never_replaces_the_transports_own(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = body(CONTENT)
    headers = {
        "Authorization": "Bearer secret",
        "Host": "internal",
        "Accept-Encoding": "gzip",
        "Range": "bytes=0-1",
    }
    assert isinstance(fetch(loopback.url("/"), tmp_path, private_too, headers=headers), Fetched)
    sent = loopback.requests[0].headers
    assert sent["authorization"] == "Bearer secret"
    assert sent["host"] == f"127.0.0.1:{loopback.port}"
    assert sent["accept-encoding"] == "identity"
    assert "range" not in sent


# --- pinning ---------------------------------------------------------------------------------------


def test_a_rebinding_name_is_resolved_once_and_the_judged_address_is_the_one_connected_to(
    public_only: FetchLimits, tmp_path: Path, connections: list[str]
) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["169.254.169.254"]])
    outcome = fetch(
        "https://rebind.example/", tmp_path, public_only, resolve=lambda _host, _port: next(answers)
    )
    assert outcome == FetchFailed(Failure.CONNECT, retryable=True)
    assert connections == ["93.184.216.34"]
    assert next(answers) == ["127.0.0.1"]  # nobody asked a second time


def test_the_body_comes_from_the_address_of_the_first_answer(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = body(b"first")
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    with serving(address="127.0.0.2", port=loopback.port) as other:
        other.answers["/"] = body(b"rebound")
        outcome = fetch(
            loopback.url("/", host="rebind.example"),
            tmp_path,
            private_too,
            resolve=lambda _host, _port: next(answers),
        )
    assert isinstance(outcome, Fetched)
    assert outcome.path.read_bytes() == b"first"
    assert other.requests == []


def test_a_rebinding_name_is_judged_again_when_a_redirect_comes_back_to_it(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path, connections: list[str]
) -> None:
    loopback.answers["/"] = redirect("/again")
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    url = loopback.url("/", host="rebind.example")
    outcome = fetch(url, tmp_path, private_too, resolve=lambda _host, _port: next(answers))
    assert outcome == FetchRefused(Refusal.PRIVATE_ADDRESS)
    assert connections == ["127.0.0.1"]


def test_the_next_address_is_tried_when_one_does_not_answer(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path, connections: list[str]
) -> None:
    loopback.answers["/"] = body(CONTENT)
    url = loopback.url("/", host="media.example")
    outcome = fetch(url, tmp_path, private_too, resolve=answering("127.0.0.3", "127.0.0.1"))
    assert isinstance(outcome, Fetched)
    assert connections == ["127.0.0.3", "127.0.0.1"]


def test_tls_keeps_the_name_for_sni_and_certificate_while_the_socket_goes_to_the_address(
    private_too: FetchLimits, tmp_path: Path
) -> None:
    context, trusted = certificate_for("media.example", tmp_path)
    limits = dataclasses.replace(private_too, ca_file=str(trusted))
    with serving(tls=context) as server:
        server.answers["/"] = body(CONTENT)
        url = server.url("/", host="media.example", scheme="https")
        assert isinstance(fetch(url, tmp_path, limits, resolve=answering("127.0.0.1")), Fetched)
    assert server.server_names == ["media.example"]
    assert server.requests[0].headers["host"] == f"media.example:{server.port}"


@pytest.mark.parametrize("host", ["other.example", "127.0.0.1"])
def test_a_certificate_for_another_name_ends_before_a_request_is_sent(
    host: str, private_too: FetchLimits, tmp_path: Path
) -> None:
    context, trusted = certificate_for("media.example", tmp_path)
    limits = dataclasses.replace(private_too, ca_file=str(trusted))
    with serving(tls=context) as server:
        url = server.url("/", host=host, scheme="https")
        outcome = fetch(
            url, tmp_path, limits, headers={"Authorization": "secret"}, resolve=answering("127.0.0.1")
        )
    assert outcome == FetchFailed(Failure.CONNECT, retryable=True)
    assert server.requests == []


# --- redirects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data/iam/", Refusal.PRIVATE_ADDRESS),
        ("https://169.254.169.254/", Refusal.PRIVATE_ADDRESS),
        ("http://2852039166/", Refusal.NUMERIC_HOST),
        ("http://[::ffff:169.254.169.254]/", Refusal.PRIVATE_ADDRESS),
        ("file:///etc/passwd", Refusal.SCHEME),
        ("gopher://127.0.0.1:6379/_", Refusal.SCHEME),
        ("http://user:pass@127.0.0.1/", Refusal.CREDENTIALS),
        ("http://[::1", Refusal.BAD_URL),
        ("http://metadata.example/", Refusal.PRIVATE_ADDRESS),
    ],
)
def test_even_with_private_addresses_allowed_a_redirect_never_reaches_the_metadata_service(
    location: str,
    reason: Refusal,
    loopback: Loopback,
    private_too: FetchLimits,
    tmp_path: Path,
    connections: list[str],
) -> None:
    loopback.answers["/"] = redirect(location)
    outcome = fetch(loopback.url("/"), tmp_path, private_too, resolve=answering("169.254.169.254"))
    assert outcome == FetchRefused(reason)
    assert connections == ["127.0.0.1"]


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://10.1.2.3/",
        "https://169.254.169.254/",
        "https://localhost/",
        "https://media.example/plain",
        "//10.0.0.1/",
    ],
)
def test_a_trusted_endpoint_cannot_redirect_into_the_private_network(
    location: str, loopback: Loopback, public_only: FetchLimits, tmp_path: Path, connections: list[str]
) -> None:
    loopback.answers["/"] = redirect(location)
    limits = dataclasses.replace(public_only, trusted_origins=frozenset({loopback.url("")}))
    outcome = fetch(loopback.url("/"), tmp_path, limits, resolve=answering("10.0.0.1"))
    assert isinstance(outcome, FetchRefused)
    assert connections == ["127.0.0.1"]


def test_the_same_endpoint_is_refused_where_it_is_not_the_administrators(
    loopback: Loopback, public_only: FetchLimits, tmp_path: Path, connections: list[str]
) -> None:
    assert isinstance(fetch(loopback.url("/"), tmp_path, public_only), FetchRefused)
    assert connections == []


def test_a_stranger_cannot_redirect_to_a_trusted_endpoint(
    loopback: Loopback, public_only: FetchLimits, tmp_path: Path
) -> None:
    with serving() as comfy:
        loopback.answers["/"] = redirect(comfy.url("/history"))
        limits = dataclasses.replace(
            public_only, trusted_origins=frozenset({loopback.url(""), comfy.url("")})
        )
        outcome = fetch(loopback.url("/"), tmp_path, limits)
    assert isinstance(outcome, FetchRefused)
    assert comfy.requests == []


def test_three_redirects_are_followed_and_a_fourth_is_not(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers |= {f"/{hop}": redirect(f"/{hop + 1}", "307 Temporary Redirect") for hop in range(4)}
    loopback.answers["/4"] = body(CONTENT)
    assert isinstance(fetch(loopback.url("/1"), tmp_path, private_too), Fetched)
    assert fetch(loopback.url("/0"), tmp_path, private_too) == FetchRefused(Refusal.TOO_MANY_REDIRECTS)


def test_a_secret_header_stays_with_its_origin_even_when_a_redirect_returns_there(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    with serving() as other:
        loopback.answers |= {
            "/": redirect("/same"),
            "/same": redirect(other.url("/away")),
            "/back": body(CONTENT),
        }
        other.answers["/away"] = redirect(loopback.url("/back"))
        outcome = fetch(loopback.url("/"), tmp_path, private_too, headers={"X-Key": "secret"})
    assert isinstance(outcome, Fetched)
    assert [request.headers.get("x-key") for request in loopback.requests] == ["secret", "secret", None]
    assert "x-key" not in other.requests[0].headers


# --- bounds ----------------------------------------------------------------------------------------


def test_a_body_announced_too_large_is_refused_unread(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = endless(f"{OK}Content-Length: {10 * 2**30}\r\n\r\n".encode(), bytes(65_536))
    assert fetch(loopback.url("/"), tmp_path, private_too) == FetchRefused(Refusal.TOO_LARGE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("head", "piece"),
    [("", bytes(65_536)), ("Transfer-Encoding: chunked\r\n", b"10000\r\n" + bytes(65_536) + b"\r\n")],
)
def test_an_endless_body_ends_at_the_byte_cap(
    head: str, piece: bytes, loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = endless(f"{OK}{head}\r\n".encode(), piece)
    assert fetch(loopback.url("/"), tmp_path, private_too) == FetchRefused(Refusal.TOO_LARGE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["gzip", "br", "gzip, identity", "deflate"])
def test_a_compressed_body_is_refused_instead_of_unpacked(
    encoding: str, loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    loopback.answers["/"] = body(bomb, more=f"Content-Encoding: {encoding}\r\n")
    assert fetch(loopback.url("/"), tmp_path, private_too) == FetchRefused(Refusal.ENCODED_BODY)


@pytest.mark.parametrize(
    "head",
    [
        f"{OK}Content-Length: 100000\r\n\r\n",  # in the body
        f"{OK}\r\n",  # in a body without announced end: the cut must not look like its end
        f"{OK}X-Slow: ",  # in the headers
        "HTTP/1.1 2",  # in the status line
        f"{OK}Transfer-Encoding: chunked\r\n\r\n",  # in a chunk's size
    ],
)
def test_a_drip_of_bytes_ends_at_the_deadline_of_the_whole(
    head: str, loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = dripping(head.encode(), loopback)
    limits = dataclasses.replace(private_too, deadline_s=0.3)
    began = time.monotonic()
    assert fetch(loopback.url("/"), tmp_path, limits) == FetchFailed(Failure.DEADLINE, retryable=True)
    assert time.monotonic() - began < 2
    assert list(tmp_path.iterdir()) == []


def test_a_tls_handshake_that_never_ends_ends_at_the_deadline(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    limits = dataclasses.replace(private_too, deadline_s=0.3)
    with serving() as silent:  # a plain server that waits for a request line which TLS never sends
        outcome = fetch(silent.url("/", scheme="https"), tmp_path, limits)
    assert outcome == FetchFailed(Failure.DEADLINE, retryable=True)


def test_a_resolver_that_does_not_answer_ends_at_the_deadline(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    def silent(host: str, port: int) -> list[str]:
        loopback.closing.wait(10)
        return ["127.0.0.1"]

    limits = dataclasses.replace(private_too, deadline_s=0.2)
    outcome = fetch(loopback.url("/", host="media.example"), tmp_path, limits, resolve=silent)
    assert outcome == FetchFailed(Failure.DEADLINE, retryable=True)


# --- what goes wrong on the other side --------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        ("401 Unauthorized", Failure.LOCATOR_EXPIRED, False),
        ("403 Forbidden", Failure.LOCATOR_EXPIRED, False),
        ("404 Not Found", Failure.LOCATOR_EXPIRED, False),
        ("410 Gone", Failure.LOCATOR_EXPIRED, False),
        ("429 Too Many Requests", Failure.SERVER, True),
        ("500 Oops", Failure.SERVER, True),
        ("504 Gateway Timeout", Failure.SERVER, True),
        ("418 I'm a teapot", Failure.STATUS, False),
        ("206 Partial Content", Failure.STATUS, False),
        ("304 Not Modified", Failure.STATUS, False),
    ],
)
def test_a_status_says_whether_the_same_locator_is_worth_another_try(
    status: str, code: Failure, retryable: bool, loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = body(b"" if status.startswith("304") else b"<html>", status=status)
    assert fetch(loopback.url("/"), tmp_path, private_too) == FetchFailed(
        code, retryable, status=int(status[:3])
    )


@pytest.mark.parametrize(
    ("said", "heard"), [("7", 7), ("99999999", 86_400), ("soon", None), ("-1", None), ("1" * 50, None)]
)
def test_retry_after_is_heard_within_reason(
    said: str, heard: int | None, loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = body(b"", status="503 Busy", more=f"Retry-After: {said}\r\n")
    outcome = fetch(loopback.url("/"), tmp_path, private_too)
    assert outcome == FetchFailed(Failure.SERVER, retryable=True, status=503, retry_after_s=heard)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (body(CONTENT, length=len(CONTENT) + 1), Failure.TRUNCATED),
        (raw(f"{OK}Transfer-Encoding: chunked\r\n\r\nfff\r\nabc".encode()), Failure.CONNECTION_LOST),
        (raw(f"{OK}Transfer-Encoding: chunked\r\n\r\nno number\r\nabc".encode()), Failure.CONNECTION_LOST),
        (raw(b""), Failure.CONNECTION_LOST),
        (raw(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"), Failure.CONNECTION_LOST),
        (raw(f"{OK}X: {'a' * 70_000}\r\n\r\n".encode()), Failure.CONNECTION_LOST),
        (raw(f"{OK}{'X: a\r\n' * 200}\r\n".encode()), Failure.CONNECTION_LOST),
        (body(b""), Failure.EMPTY),
        (raw(f"{OK}\r\n".encode()), Failure.EMPTY),
    ],
)
def test_a_broken_answer_is_a_failure_that_may_pass(
    answer: object, code: Failure, loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = answer  # type: ignore[assignment]
    assert fetch(loopback.url("/"), tmp_path, private_too) == FetchFailed(code, retryable=True)
    assert list(tmp_path.iterdir()) == []


def test_a_content_length_that_is_too_small_cuts_the_body_there(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = body(CONTENT, length=1000)
    outcome = fetch(loopback.url("/"), tmp_path, private_too)
    assert isinstance(outcome, Fetched)
    assert outcome.size_bytes == 1000  # verification finds what is missing


def test_a_name_that_does_not_resolve_is_a_failure_that_may_pass(
    private_too: FetchLimits, tmp_path: Path
) -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    for resolve in (unknown, answering()):
        outcome = fetch("https://media.example/", tmp_path, private_too, resolve=resolve)
        assert outcome == FetchFailed(Failure.DNS, retryable=True)


def test_a_closed_port_is_a_failure_that_may_pass(private_too: FetchLimits, tmp_path: Path) -> None:
    with serving() as gone:
        url = gone.url("/")
    assert fetch(url, tmp_path, private_too) == FetchFailed(Failure.CONNECT, retryable=True)


def test_two_gateway_timeouts_and_then_the_file_is_what_a_retry_sees(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    outcomes = []
    for answer in (
        body(b"", status="504 Gateway Timeout"),
        body(b"", status="504 Gateway Timeout"),
        body(CONTENT),
    ):
        loopback.answers["/"] = answer
        outcomes.append(fetch(loopback.url("/"), tmp_path, private_too))
    assert [type(outcome) for outcome in outcomes] == [FetchFailed, FetchFailed, Fetched]


# --- our own side ----------------------------------------------------------------------------------


def test_a_directory_that_takes_no_file_is_our_failure_and_not_the_providers(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/"] = body(CONTENT)
    nowhere = tmp_path / "not" / "made"
    assert fetch(loopback.url("/"), nowhere, private_too) == FetchFailed(Failure.STORAGE, retryable=True)
    assert keep([CONTENT], nowhere, private_too) == FetchFailed(Failure.STORAGE, retryable=True)


def test_a_full_disk_is_our_failure_and_leaves_nothing_behind(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path, file_size_limit: None
) -> None:
    loopback.answers["/"] = body(CONTENT)
    assert fetch(loopback.url("/"), tmp_path, private_too) == FetchFailed(Failure.STORAGE, retryable=True)
    assert list(tmp_path.iterdir()) == []


def test_bytes_at_hand_are_kept_under_the_same_cap(private_too: FetchLimits, tmp_path: Path) -> None:
    kept = keep([b"abc", b"def"], tmp_path, private_too, "image/png")
    assert isinstance(kept, Fetched)
    assert (kept.path.read_bytes(), kept.size_bytes, kept.declared_type) == (b"abcdef", 6, "image/png")
    assert keep([CONTENT, CONTENT], tmp_path, private_too) == FetchRefused(Refusal.TOO_LARGE)
    assert keep([], tmp_path, private_too) == FetchFailed(Failure.EMPTY, retryable=True)
    assert list(tmp_path.iterdir()) == [kept.path]


def test_no_outcome_repeats_the_secret_url(
    loopback: Loopback, private_too: FetchLimits, tmp_path: Path
) -> None:
    loopback.answers["/?signature=canary"] = body(b"", status="403 Forbidden")
    outcome = fetch(loopback.url("/?signature=canary"), tmp_path, private_too)
    assert "canary" not in repr(outcome)
