"""A submission is accepted, refused or unknown by what the provider answered, and is posted once."""

import json
from typing import Any

import pytest
import requests

from catalog.providers.http import Transport
from catalog.providers.types import ChannelAccess, Rejected, SendForbidden, SubmitOutcome, Unknown
from catalog.simulator.scenario import ANSWERS
from catalog.simulator.server import Simulator
from tests.providers.cases import Case, Refusal
from tests.providers.conformance.suite import (
    KEY,
    accepted,
    accepted_at_provider,
    every,
    limits_for,
    plan_of,
    script,
    submit,
)
from tests.providers.conftest import CALM, Serve, access, read_request, reply, replying


def test_an_accepted_video_has_the_providers_id_and_carries_our_reference(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    outcome = accepted(case, client)
    assert simulator.world.task(outcome.provider_job_id) is not None
    assert accepted_at_provider(simulator) == {KEY: 1}


def test_an_image_comes_with_the_answer_where_the_protocol_is_synchronous(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    outcome = accepted(case, client, modality="image")
    assert bool(outcome.outputs) is not case.adapter.capabilities.asynchronous["image"]
    assert [locator.kind for locator in outcome.outputs] == ["image"]
    picture = requests.get(outcome.outputs[0].url, timeout=60)
    assert picture.headers["Content-Type"].startswith("image/")
    assert accepted_at_provider(simulator) == {KEY: 1}


_UNKNOWN_AT = {
    "drop_before_response": "awaiting",
    "reset_before_response": "awaiting",
    "drop_after_acceptance": "awaiting",
    "reset_after_acceptance": "awaiting",
    "hang": "awaiting",
    "garbage": "awaiting",
    "slow_headers": "awaiting",
}
_NOT_CREATED = ("drop_before_response", "reset_before_response", "redirect")


@pytest.mark.parametrize("modality", ["video", "image"])
@pytest.mark.parametrize(
    "answer", [each for each in ANSWERS if each not in ("whole", "repeated_id", "redirect")]
)
def test_an_answer_that_proves_nothing_is_unknown_and_was_posted_once(
    case: Case, channel: ChannelAccess, simulator: Simulator, answer: str, modality: str
) -> None:
    if answer in ("missing_id", "wrong_type_id") and not case.adapter.capabilities.asynchronous[modality]:
        pytest.skip("a synchronous answer holds no id")
    script(simulator, "submit", answer=answer)
    with Transport(channel, limits_for(answer)) as client:
        outcome = submit(case, client, modality=modality)
    assert isinstance(outcome, Unknown)
    assert outcome.stage == _UNKNOWN_AT.get(answer, "body")
    log = simulator.world.log()
    assert len(log["posts"]) == 1
    assert log["accepted"] == ({} if answer in _NOT_CREATED else {KEY: 1})
    json.dumps(outcome.evidence(), allow_nan=False)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused_and_not_followed(
    case: Case, client: Transport, simulator: Simulator, status: int
) -> None:
    script(simulator, "submit", answer="redirect", status=status, location=simulator.url + "/elsewhere?key=1")
    outcome = submit(case, client)
    assert isinstance(outcome, Rejected)
    assert outcome.error.code == "unexpected_redirect"
    assert "key=1" not in json.dumps(outcome.evidence())
    assert accepted_at_provider(simulator) == {}


def test_a_refused_connection_is_a_rejection_of_the_channel(case: Case) -> None:
    with Transport(access("http://127.0.0.1:9", case.adapter.key), CALM) as client:
        outcome = submit(case, client)
    assert isinstance(outcome, Rejected)
    assert outcome.stage == "connecting"
    error = outcome.error
    assert (error.category, error.scope, error.retryable, error.code) == (
        "supply",
        "channel",
        True,
        "network",
    )


def test_a_submission_that_the_caller_forbids_was_not_sent(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    def forbid() -> None:
        raise SendForbidden("the lease ran out")

    outcome = case.adapter.submit(client, plan_of(case), KEY, forbid)
    assert isinstance(outcome, Rejected)
    assert (outcome.stage, outcome.error.code, outcome.error.category) == (
        "connecting",
        "not_created",
        "capacity",
    )
    assert outcome.error.retryable
    assert simulator.world.log()["posts"] == []


@every("refusals")
def test_a_documented_error_is_a_rejection_in_our_words(
    case: Case, entry: Refusal, simulator: Simulator
) -> None:
    script(simulator, "submit", error=entry.code, status=entry.status)
    with Transport(access(simulator.base_url(case.adapter.key), case.adapter.key), CALM) as client:
        outcome = submit(case, client)
    assert isinstance(outcome, Rejected)
    error = outcome.error
    assert (error.category, error.scope, error.retryable, error.code) == entry.means
    assert error.raw_status == entry.code
    assert entry.code in json.dumps(dict(error.raw))
    assert accepted_at_provider(simulator) == {}


@pytest.mark.parametrize(
    ("written", "seconds"), [("0", 0), ("30", 30), ("3600", 3600), ("soon", None), ("-5", None)]
)
def test_retry_after_is_kept(
    case: Case, client: Transport, simulator: Simulator, written: str, seconds: float | None
) -> None:
    limited = next(each for each in case.refusals if each.means[3] == "rate_limited")
    script(simulator, "submit", error=limited.code, status=limited.status, retry_after=written)
    outcome = submit(case, client)
    assert isinstance(outcome, Rejected)
    assert outcome.error.retry_after_s == seconds


UNDOCUMENTED = {
    "no_body": b"",
    "text": b"refused by a proxy",
    "another_form": b'{"detail": "no"}',
    "a_list": b"[]",
    "no_code": b'{"error": {"message": "no"}}',
}


@pytest.mark.parametrize("body", UNDOCUMENTED.values(), ids=UNDOCUMENTED.keys())
@pytest.mark.parametrize("status", [401, 403, 404, 405, 413, 415, 422, 429])
def test_a_refusal_in_another_form_is_an_unknown_wording(
    case: Case, serve: Serve, status: int, body: bytes
) -> None:
    outcome = _answered(case, serve, reply(status, body))
    assert isinstance(outcome, Rejected)
    error = outcome.error
    expected = ("supply", "supply", False, "internal_permanent")
    assert (error.category, error.scope, error.retryable, error.code) == expected
    assert error.raw["status"] == status


@pytest.mark.parametrize("body", UNDOCUMENTED.values(), ids=UNDOCUMENTED.keys())
@pytest.mark.parametrize(
    "status", [400, 402, 408, 409, 418, 425, 451, 499, 500, 501, 502, 503, 504, 520, 599]
)
def test_any_other_status_in_another_form_proves_nothing(
    case: Case, serve: Serve, status: int, body: bytes
) -> None:
    if status in case.adapter.capabilities.proves_absence:
        pytest.skip("declared as proof")
    assert isinstance(_answered(case, serve, reply(status, body)), Unknown)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_failed_server_may_have_created_it(
    case: Case, client: Transport, simulator: Simulator, status: int
) -> None:
    internal = next(each for each in case.failures if each.means[3] == "internal_retryable")
    script(simulator, "submit", error_after_acceptance=internal.code, status=status)
    assert isinstance(submit(case, client), Unknown)
    assert accepted_at_provider(simulator) == {KEY: 1}


def test_a_refusal_that_breaks_off_proves_nothing(case: Case, serve: Serve) -> None:
    whole = reply(401, b'{"error": {"code": "AuthenticationError", "message": "no"}}')

    def behaviour(connection: Any) -> None:
        read_request(connection)
        connection.sendall(whole[:-10])

    with Transport(access(f"http://127.0.0.1:{serve(behaviour)}", case.adapter.key), CALM) as client:
        assert isinstance(submit(case, client), Unknown)


def _answered(case: Case, serve: Serve, answer: bytes) -> SubmitOutcome:
    with Transport(access(f"http://127.0.0.1:{serve(replying(answer))}", case.adapter.key), CALM) as client:
        return submit(case, client)
