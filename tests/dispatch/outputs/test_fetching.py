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
    CONTENT,
    OK,
    Loopback,
    answering,
    body,
    dripping,
    endless,
    raw,
    serving,
)


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
    assert time.monotonic() - began < 30
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
        loopback.closing.wait(60)
        return ["127.0.0.1"]

    limits = dataclasses.replace(private_too, deadline_s=0.2)
    outcome = fetch(loopback.url("/", host="media.example"), tmp_path, limits, resolve=silent)
    assert outcome == FetchFailed(Failure.DEADLINE, retryable=True)


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
