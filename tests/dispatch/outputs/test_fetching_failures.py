"""What goes wrong on the other side of a fetch, and whether it is worth another try."""

from pathlib import Path

import pytest

from dispatch.outputs.fetching import Failure, Fetched, FetchFailed, fetch
from dispatch.outputs.limits import FetchLimits
from tests.dispatch.outputs.loopback import CONTENT, OK, Loopback, answering, body, raw, serving


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
