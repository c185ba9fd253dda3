"""Whom a fetch connects to: one judged address, whatever names and redirects say."""

import dataclasses
from pathlib import Path

import pytest

from dispatch.outputs.addresses import Refusal
from dispatch.outputs.fetching import Failure, Fetched, FetchFailed, FetchRefused, fetch
from dispatch.outputs.limits import FetchLimits
from tests.dispatch.outputs.loopback import (
    CONTENT,
    Loopback,
    answering,
    body,
    certificate_for,
    redirect,
    serving,
)


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
