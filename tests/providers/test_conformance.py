"""What every adapter must do, whichever provider it speaks to; against its face of the simulator."""

import json
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from catalog.providers.http import Limits, Transport
from catalog.providers.registry import ADAPTERS, UnknownProvider, adapter_for, config_problems
from catalog.providers.types import (
    Absent,
    Accepted,
    CallbackEvent,
    CallbackInvalid,
    CannotTell,
    ChannelAccess,
    CompileError,
    CompilePlan,
    Found,
    JobStatus,
    PollFailure,
    Rejected,
    SendForbidden,
    SubmitOutcome,
    Unknown,
    Window,
    locator_from_json,
    plan_from_json,
)
from catalog.simulator.scenario import ANSWERS
from catalog.simulator.server import Simulator
from tests.factories import NOW
from tests.providers.cases import CASES, Case, Refusal
from tests.providers.conftest import CALM, CREDENTIAL, QUICK, Serve, access, read_request, reply, replying

GOLDEN = Path(__file__).parent / "golden"
WINDOW = Window(NOW - timedelta(seconds=60), NOW + timedelta(seconds=60))
KEY = "fy-00000001"


@pytest.fixture(params=CASES, ids=lambda case: case.adapter.key)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def channel(case: Case, simulator: Simulator) -> ChannelAccess:
    return access(simulator.base_url(case.adapter.key), case.adapter.key)


@pytest.fixture
def client(channel: ChannelAccess) -> Iterator[Transport]:
    with Transport(channel, CALM) as transport:
        yield transport


def every(attribute: str) -> Any:
    """Parametrizes over the entries of one attribute of every case."""
    rows = [
        pytest.param(case, entry, id=f"{case.adapter.key}-{getattr(entry, 'code', entry)}")
        for case in CASES
        for entry in getattr(case, attribute)
    ]
    return pytest.mark.parametrize(("case", "entry"), rows)


def plan_of(case: Case, modality: str = "video") -> CompilePlan:
    request = next(each for each in case.legal.values() if each["modality"] == modality)
    plan = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(plan, CompilePlan)
    return plan


def submit(case: Case, client: Transport, key: str = KEY, modality: str = "video") -> SubmitOutcome:
    return case.adapter.submit(client, plan_of(case, modality), key, lambda: None)


def accepted(case: Case, client: Transport, key: str = KEY, modality: str = "video") -> Accepted:
    outcome = submit(case, client, key, modality)
    assert isinstance(outcome, Accepted), outcome
    return outcome


def poll(case: Case, client: Transport, job_id: str) -> JobStatus:
    result = case.adapter.poll(client, job_id)
    assert isinstance(result, JobStatus), result
    return result


def limits_for(answer: str) -> Limits:
    """Short where the answer never comes, or never ends."""
    return replace(QUICK, deadline_s=0.8) if answer in ("hang", "slow", "slow_headers") else CALM


def script(simulator: Simulator, call: str, times: int | None = None, **do: Any) -> None:
    simulator.script({"rules": [{"when": {"call": call}, "times": times, "do": do}]})


def accepted_at_provider(simulator: Simulator) -> dict[str, int]:
    return simulator.world.log()["accepted"]


# --- the registry ------------------------------------------------------------------------------------


def test_every_adapter_has_a_case() -> None:
    assert {case.adapter.key for case in CASES} == set(ADAPTERS)


def test_an_unknown_provider_is_named_with_those_that_exist() -> None:
    with pytest.raises(UnknownProvider, match=r"'nobody'.*ark"):
        adapter_for("nobody")
    assert config_problems("nobody", {}) is None


def test_the_config_is_held_to_the_adapters_schema(case: Case) -> None:
    assert config_problems(case.adapter.key, case.config) == []
    assert config_problems(case.adapter.key, {}) == []
    for config in case.bad_configs:
        assert config_problems(case.adapter.key, config)


def test_the_capabilities_speak_of_every_modality(case: Case) -> None:
    capabilities = case.adapter.capabilities
    modalities = set(case.supplies)
    assert (
        set(capabilities.asynchronous) == set(capabilities.recovery) == set(capabilities.cancel) == modalities
    )


# --- compiling ---------------------------------------------------------------------------------------


@every("legal")
def test_a_legal_request_becomes_the_golden_native_one(case: Case, entry: str) -> None:
    request = case.legal[entry]
    plan = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(plan, CompilePlan), plan
    golden = json.loads((GOLDEN / f"{entry}.json").read_text())
    assert json.loads(json.dumps(plan.as_json())) == golden
    assert plan_from_json(golden) == plan


@every("legal")
def test_the_same_request_gives_the_same_bytes_in_whatever_order_it_is_written(
    case: Case, entry: str
) -> None:
    request = case.legal[entry]
    reordered = dict(reversed(request.items()))
    first, second = (case.adapter.compile(each, case.supply_for(request)) for each in (request, reordered))
    assert isinstance(first, CompilePlan)
    assert isinstance(second, CompilePlan)
    assert json.dumps(first.as_json()) == json.dumps(second.as_json())


@every("legal")
def test_nothing_is_degraded_unless_a_rule_says_so(case: Case, entry: str) -> None:
    request = case.legal[entry]
    plan = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(plan, CompilePlan)
    assert {step.kind for step in plan.transformations} <= {"exact", "lossless"}


@every("legal")
def test_the_simulator_takes_what_the_adapter_compiles(case: Case, entry: str, simulator: Simulator) -> None:
    request = case.legal[entry]
    plan = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(plan, CompilePlan)
    with Transport(access(simulator.base_url(case.adapter.key), case.adapter.key), CALM) as client:
        assert isinstance(case.adapter.submit(client, plan, KEY, lambda: None), Accepted)


@every("illegal")
def test_an_illegal_request_is_refused_before_anything_is_sent(case: Case, entry: str) -> None:
    request = case.illegal[entry]
    refused = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(refused, CompileError)
    assert entry in "; ".join(refused.reasons)


def test_an_explicit_null_means_the_same_as_nothing(case: Case) -> None:
    for request in case.legal.values():
        supply = case.supply_for(request)
        nulls = {"seed": None, "negative_prompt": None, "fps": None, "reference_videos": None}
        assert case.adapter.compile({**nulls, **request}, supply) == case.adapter.compile(request, supply)


def test_a_plan_shows_no_prompt_when_it_is_printed(case: Case) -> None:
    assert "lighthouse" not in repr(plan_of(case))


# --- submitting --------------------------------------------------------------------------------------


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
    picture = requests.get(outcome.outputs[0].url, timeout=5)
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


# --- following ---------------------------------------------------------------------------------------


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
    video = requests.get(ended.outputs[0].url, timeout=5)
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


# --- cancelling --------------------------------------------------------------------------------------


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


# --- lost submissions --------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["drop_after_acceptance", "hang", "not_json", "missing_id"])
def test_a_lost_video_is_found_as_the_capabilities_claim(
    case: Case, channel: ChannelAccess, client: Transport, simulator: Simulator, answer: str
) -> None:
    script(simulator, "submit", times=1, answer=answer)
    with Transport(channel, limits_for(answer)) as sending:
        assert isinstance(submit(case, sending), Unknown)
    found = case.adapter.recover(client, KEY, "", case.supplies["video"], WINDOW)
    if case.adapter.capabilities.recovery["video"] == "none":
        assert isinstance(found, CannotTell)
        return
    assert isinstance(found, Found)
    assert poll(case, client, found.provider_job_id).status == "provider_queued"
    assert accepted_at_provider(simulator) == {KEY: 1}


def test_a_video_that_was_never_created_is_absent_from_a_whole_list(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    for number in range(130):
        accepted(case, client, f"fy-other-{number}")
    script(simulator, "submit", answer="drop_before_response")
    assert isinstance(submit(case, client), Unknown)
    result = case.adapter.recover(client, KEY, "", case.supplies["video"], WINDOW)
    assert result == Absent(130, "a complete list without our reference")


def test_a_job_on_a_later_page_is_found(case: Case, client: Transport) -> None:
    wanted = accepted(case, client)
    for number in range(130):
        accepted(case, client, f"fy-other-{number}")
    found = case.adapter.recover(client, KEY, "", case.supplies["video"], WINDOW)
    assert isinstance(found, Found)
    assert found.provider_job_id == wanted.provider_job_id


def test_a_lost_image_is_proved_neither_way_where_images_are_not_listed(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    script(simulator, "submit", answer="drop_before_response")
    assert isinstance(submit(case, client, modality="image"), Unknown)
    result = case.adapter.recover(client, KEY, "", case.supplies["image"], WINDOW)
    assert isinstance(result, CannotTell) is (case.adapter.capabilities.recovery["image"] == "none")


def test_nothing_is_absent_while_a_job_without_a_reference_may_be_ours(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    script(simulator, "submit", times=1, without_reference=True, answer="drop_after_acceptance")
    assert isinstance(submit(case, client), Unknown)
    assert isinstance(case.adapter.recover(client, KEY, "", case.supplies["video"], WINDOW), CannotTell)


@pytest.mark.parametrize("answer", ["reset_before_response", "truncated", "not_json", "list", "hang"])
def test_nothing_is_absent_from_a_list_that_could_not_be_read(
    case: Case, channel: ChannelAccess, simulator: Simulator, answer: str
) -> None:
    script(simulator, "list", answer=answer)
    with Transport(channel, limits_for(answer)) as client:
        assert isinstance(case.adapter.recover(client, KEY, "", case.supplies["video"], WINDOW), CannotTell)


def test_nothing_is_absent_when_it_was_not_said_what_is_looked_for(case: Case, client: Transport) -> None:
    unsaid = replace(case.supplies["video"], modality="")
    assert isinstance(case.adapter.recover(client, KEY, "", unsaid, WINDOW), CannotTell)
    accepted(case, client)
    assert isinstance(case.adapter.recover(client, KEY, "", unsaid, WINDOW), Found)


# --- the account -------------------------------------------------------------------------------------


def test_the_free_check_passes_with_a_good_key_and_spends_nothing(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    assert case.adapter.check(client).passed
    assert simulator.world.log()["posts"] == []


def test_the_free_check_fails_with_a_revoked_key(case: Case, client: Transport, simulator: Simulator) -> None:
    simulator.script({"accounts": {CREDENTIAL: {"state": "revoked"}}})
    checked = case.adapter.check(client)
    assert not checked.passed
    assert checked.error is not None
    assert (checked.error.scope, checked.error.code) == ("channel", "auth")


def test_the_free_check_fails_where_nobody_answers(case: Case) -> None:
    with Transport(access("http://127.0.0.1:9", case.adapter.key), CALM) as client:
        checked = case.adapter.check(client)
    assert not checked.passed
    assert checked.error is not None
    assert checked.error.code == "network"


def test_an_account_out_of_balance_refuses_submissions(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    simulator.script({"accounts": {CREDENTIAL: {"state": "overdue"}}})
    outcome = submit(case, client)
    assert isinstance(outcome, Rejected)
    assert (outcome.error.scope, outcome.error.code) == ("channel", "balance")


# --- callbacks ---------------------------------------------------------------------------------------


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


# --- secrets -----------------------------------------------------------------------------------------


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
