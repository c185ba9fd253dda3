"""What a callback tells, who is believed, and that no secret is kept of any call."""

import json
import logging
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from catalog.providers.http import Transport
from catalog.providers.types import CallbackEvent, CallbackInvalid, ChannelAccess, SubmitOutcome
from catalog.simulator.server import Simulator
from tests.factories import NOW
from tests.providers.cases import Case
from tests.providers.conformance.suite import KEY, accepted, poll, script, submit
from tests.providers.conftest import CALM, CREDENTIAL, Serve, access, read_request, reply


class Called:
    """A callback as it came in."""

    def __init__(self, case: Case, simulator: Simulator, serve: Serve, word: str = "succeeded") -> None:
        received: list[bytes] = []

        def behaviour(connection: Any) -> None:
            received.append(read_request(connection))
            connection.sendall(reply(204, b""))

        base = f"http://127.0.0.1:{serve(behaviour)}/callbacks/channel-1"
        plain = access(simulator.base_url(case.adapter.key), case.adapter.key)
        self.access = replace(plain, callback_url=base, callback_secrets=("a secret of channel-1",))
        script(simulator, "submit", queue_s=0, run_s=0)
        with Transport(self.access, CALM) as client:
            self.job_id = accepted(case, client).provider_job_id
        request = _awaited(received, f'"{word}"'.encode())
        head, _, self.body = request.partition(b"\r\n\r\n")
        target = head.split(b" ")[1].decode()
        self.query = dict(pair.split("=") for pair in target.partition("?")[2].split("&"))

    def parse(self, case: Case, **changes: Any) -> CallbackEvent | CallbackInvalid:
        given = {"query": self.query, "access": self.access, "now": NOW, "body": self.body, **changes}
        body = given.pop("body")
        return case.adapter.parse_callback({}, body, **given)


def _awaited(received: list[bytes], part: bytes) -> bytes:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for request in list(received):
            if part in request:
                return request
        time.sleep(0.01)
    raise AssertionError(f"nobody called with {part!r}")


@pytest.fixture
def called(case: Case, simulator: Simulator, serve: Serve) -> Called:
    if case.adapter.capabilities.callback_signature == "none":
        pytest.skip("never believed")
    return Called(case, simulator, serve)


def test_a_callback_tells_what_a_poll_would(case: Case, called: Called) -> None:
    event = called.parse(case)
    assert isinstance(event, CallbackEvent)
    assert (event.provider_job_id, event.client_request_key) == (called.job_id, KEY)
    assert event.status.status == "succeeded"
    assert event.status.outputs


def test_a_callback_that_comes_twice_is_one_event(case: Case, called: Called) -> None:
    assert called.parse(case) == called.parse(case)


def test_a_callback_of_another_key_or_account_is_refused(case: Case, called: Called) -> None:
    forged_token = {**called.query, "token": "0" * 64}
    other_key = {**called.query, "key": "fy-00000002"}
    other_channel = replace(called.access, callback_secrets=("a secret of channel-2",))
    assert isinstance(called.parse(case, query=forged_token), CallbackInvalid)
    assert isinstance(called.parse(case, query=other_key), CallbackInvalid)
    assert isinstance(called.parse(case, query={}), CallbackInvalid)
    assert isinstance(called.parse(case, access=other_channel), CallbackInvalid)
    assert isinstance(called.parse(case, access=replace(called.access, callback_secrets=())), CallbackInvalid)


def test_a_secret_that_was_replaced_still_proves_the_calls_of_older_jobs(case: Case, called: Called) -> None:
    rotated = replace(called.access, callback_secrets=("a newer one", *called.access.callback_secrets))
    assert called.parse(case, access=rotated) == called.parse(case)


@pytest.mark.parametrize("minutes", [-6, 6, 60 * 24 * 3])
def test_a_stale_callback_is_refused(case: Case, called: Called, minutes: int) -> None:
    assert isinstance(called.parse(case, now=NOW + timedelta(minutes=minutes)), CallbackInvalid)


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"{}", b'{"id": 7}', b"\xff", b'{"a":' * 100_000])
def test_a_callback_that_can_not_be_read_is_refused(case: Case, called: Called, body: bytes) -> None:
    assert isinstance(called.parse(case, body=body), CallbackInvalid)


def test_neither_key_nor_prompt_nor_signature_is_in_anything_that_is_stored(
    case: Case, channel: ChannelAccess, simulator: Simulator, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stored: list[Any] = []
    with Transport(channel, CALM) as client:
        first = accepted(case, client)
        picture = accepted(case, client, "fy-2", "image")
        simulator.world.advance(10)
        ended = poll(case, client, first.provider_job_id)
        cancelled = case.adapter.cancel(client, first.provider_job_id)
        stored += [
            first.evidence(),
            picture.evidence(),
            ended.raw,
            cancelled.raw,
            repr((first, picture, ended)),
        ]
        stored.append(repr(channel))
    for status in (401, 418, 500):
        outcome = _echoed(case, serve, status)
        stored += [outcome.evidence(), repr(outcome)]
    text = json.dumps(stored, default=str) + caplog.text
    assert CREDENTIAL not in text
    assert "lighthouse" not in text
    assert "signature=" not in text


def _echoed(case: Case, serve: Serve, status: int) -> SubmitOutcome:
    """A server that repeats the request's headers in its error."""

    def behaviour(connection: Any) -> None:
        head = read_request(connection).partition(b"\r\n\r\n")[0].decode()
        said = {"error": {"code": "Oops", "message": f"bad request: {head}"}}
        connection.sendall(reply(status, json.dumps(said).encode()))

    with Transport(access(f"http://127.0.0.1:{serve(behaviour)}", case.adapter.key), CALM) as client:
        return submit(case, client)
