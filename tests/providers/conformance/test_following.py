"""What a poll tells of a job, and what becomes of a wish to cancel it."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
import requests

from catalog.providers.http import Transport
from catalog.providers.types import ChannelAccess, PollFailure, locator_from_json
from catalog.simulator.scenario import ANSWERS
from catalog.simulator.server import Simulator
from tests.factories import NOW
from tests.providers.cases import Case, Refusal
from tests.providers.conformance.suite import accepted, every, limits_for, poll, script
from tests.providers.conftest import CALM, access


@every("words")
def test_every_status_has_one_meaning_and_an_unknown_one_is_kept(
    case: Case, entry: str, simulator: Simulator
) -> None:
    script(simulator, "submit", sequence=[[0, entry]])
    with Transport(access(simulator.base_url(case.adapter.key), case.adapter.key), CALM) as client:
        status = poll(case, client, accepted(case, client).provider_job_id)
    assert (status.status, status.raw_status) == (case.words[entry], entry)
    assert status.raw["status"] == entry


def test_every_word_of_the_table_has_a_meaning(case: Case) -> None:
    assert set(case.adapter.statuses.values()) <= {
        "provider_queued", "throttled", "running", "succeeded", "failed", "cancelled", "expired",
    }  # fmt: skip


def test_a_job_goes_through_its_states_to_an_output_that_can_be_fetched(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    job_id = accepted(case, client).provider_job_id
    seen = []
    for seconds in (0, 2, 3):
        simulator.world.advance(seconds)
        seen.append(poll(case, client, job_id).status)
    assert seen == ["provider_queued", "running", "succeeded"]
    ended = poll(case, client, job_id)
    assert [locator.kind for locator in ended.outputs] == ["video"]
    video = requests.get(ended.outputs[0].url, timeout=60)
    assert (video.status_code, video.headers["Content-Type"]) == (200, "video/mp4")
    assert ended.usage


def test_an_output_is_kept_with_its_expiry(case: Case, client: Transport, simulator: Simulator) -> None:
    job_id = accepted(case, client).provider_job_id
    simulator.world.advance(10)
    output = poll(case, client, job_id).outputs[0]
    assert case.adapter.capabilities.output_url_lifetime_s == case.output_lifetime_s
    assert output.expires_at == NOW + timedelta(seconds=4 + (case.output_lifetime_s or 0))
    assert locator_from_json(json.loads(json.dumps(output.as_json()))) == output


def test_an_ended_job_stays_ended_however_often_it_is_asked(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    job_id = accepted(case, client).provider_job_id
    simulator.world.advance(10)
    first = poll(case, client, job_id)
    case.adapter.cancel(client, job_id)
    simulator.world.advance(1000)
    again = poll(case, client, job_id)
    assert (first.status, again.status) == ("succeeded", "succeeded")


@every("failures")
def test_a_failed_job_is_classified_by_its_own_words(
    case: Case, entry: Refusal, simulator: Simulator
) -> None:
    script(simulator, "submit", fail=entry.code)
    with Transport(access(simulator.base_url(case.adapter.key), case.adapter.key), CALM) as client:
        job_id = accepted(case, client).provider_job_id
        simulator.world.advance(10)
        status = poll(case, client, job_id)
    assert status.status == "failed"
    assert status.error is not None
    error = status.error
    assert (error.category, error.scope, error.retryable, error.code) == entry.means
    assert entry.code in json.dumps(dict(status.raw))


def test_a_success_without_an_output_is_a_failure(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    script(simulator, "submit", without_output=True)
    job_id = accepted(case, client).provider_job_id
    simulator.world.advance(10)
    status = poll(case, client, job_id)
    assert (status.status, status.outputs) == ("failed", ())
    assert status.error is not None
    assert (status.error.category, status.error.code) == ("supply", "internal_permanent")


def test_a_success_without_an_output_is_about_content_where_the_provider_says_so(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    withheld = next(each for each in case.failures if each.means[3] == "safety_output")
    script(simulator, "submit", without_output=True, fail=withheld.code, sequence=[[0, "succeeded"]])
    status = poll(case, client, accepted(case, client).provider_job_id)
    assert status.status == "failed"
    assert status.error is not None
    assert status.error.category == "content"


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 502, 503, 504])
def test_a_poll_that_is_refused_fails_nothing(
    case: Case, client: Transport, simulator: Simulator, status: int
) -> None:
    job_id = accepted(case, client).provider_job_id
    script(simulator, "status", times=1, error="SomethingNew", status=status, retry_after="3600")
    failure = case.adapter.poll(client, job_id)
    assert isinstance(failure, PollFailure)
    assert (failure.not_found, failure.retry_after_s) == (False, 3600)
    assert poll(case, client, job_id).status == "provider_queued"


@pytest.mark.parametrize(
    "answer",
    [each for each in ANSWERS if each not in ("whole", "missing_id", "wrong_type_id", "repeated_id")],
)
def test_a_poll_that_breaks_fails_nothing(
    case: Case, channel: ChannelAccess, simulator: Simulator, answer: str
) -> None:
    with Transport(channel, CALM) as client, Transport(channel, limits_for(answer)) as asking:
        job_id = accepted(case, client).provider_job_id
        script(simulator, "status", times=1, answer=answer)
        failure = case.adapter.poll(asking, job_id)
        assert isinstance(failure, PollFailure)
        assert not failure.not_found
        assert poll(case, client, job_id).status == "provider_queued"


def test_a_job_that_the_provider_does_not_know_is_told_apart(case: Case, client: Transport) -> None:
    failure = case.adapter.poll(client, "no-such-job/../tasks?x=1")
    assert isinstance(failure, PollFailure)
    assert failure.not_found


def test_another_accounts_job_is_not_found(case: Case, channel: ChannelAccess, client: Transport) -> None:
    job_id = accepted(case, client).provider_job_id
    with Transport(replace(channel, credential="sk-somebody-else"), CALM) as other:
        failure = case.adapter.poll(other, job_id)
    assert isinstance(failure, PollFailure)
    assert failure.not_found


def test_cancelling_twice_is_cancelling_once(case: Case, client: Transport) -> None:
    job_id = accepted(case, client).provider_job_id
    outcomes = [case.adapter.cancel(client, job_id).outcome for _ in range(2)]
    assert outcomes == ["requested", "requested"]
    assert poll(case, client, job_id).status == "cancelled"


def test_a_running_job_is_cancelled_only_where_the_provider_can(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    job_id = accepted(case, client).provider_job_id
    simulator.world.advance(2)
    outcome = case.adapter.cancel(client, job_id).outcome
    assert outcome == ("requested" if case.adapter.capabilities.cancel["video"] == "any_time" else "too_late")


def test_cancelling_an_ended_job_takes_nothing_away(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    job_id = accepted(case, client).provider_job_id
    simulator.world.advance(10)
    assert case.adapter.cancel(client, job_id).outcome == "too_late"
    assert poll(case, client, job_id).outputs


def test_cancelling_what_is_not_there_is_no_failure(case: Case, client: Transport) -> None:
    assert case.adapter.cancel(client, "no-such-job").outcome == "not_found"


def test_a_cancel_that_breaks_is_told_as_failed(case: Case, client: Transport, simulator: Simulator) -> None:
    job_id = accepted(case, client).provider_job_id
    script(simulator, "cancel", answer="reset_before_response")
    assert case.adapter.cancel(client, job_id).outcome == "failed"
