"""Lost submissions are found or proved absent as the capabilities claim; the free check of an account."""

from dataclasses import replace
from datetime import timedelta

import pytest

from catalog.providers.http import Transport
from catalog.providers.types import Absent, CannotTell, ChannelAccess, Found, Rejected, Unknown, Window
from catalog.simulator.server import Simulator
from tests.providers.cases import Case
from tests.providers.conformance.suite import (
    KEY,
    WINDOW,
    accepted,
    accepted_at_provider,
    limits_for,
    poll,
    script,
    submit,
)
from tests.providers.conftest import CALM, CREDENTIAL, access


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


def test_nothing_is_absent_while_such_a_job_is_earlier_by_no_more_than_our_clock_is_ahead(
    case: Case, client: Transport, simulator: Simulator
) -> None:
    script(simulator, "submit", times=1, without_reference=True, answer="drop_after_acceptance")
    assert isinstance(submit(case, client), Unknown)
    ahead = Window(WINDOW.begin_at + timedelta(hours=1), WINDOW.end_at + timedelta(hours=1))
    assert isinstance(case.adapter.recover(client, KEY, "", case.supplies["video"], ahead), CannotTell)
    simulator.world.advance(7_200)
    assert isinstance(case.adapter.recover(client, KEY, "", case.supplies["video"], ahead), Absent)


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
