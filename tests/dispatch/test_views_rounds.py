"""A selection round's page: one outcome for each candidate, sums that add up, and nothing that moves."""

import re
from random import Random

import pytest
from django.template.loader import render_to_string
from django.test import Client

from catalog.models import Channel, Supply
from dispatch.models import SelectionRound
from dispatch.routing.reasons import REASONS
from dispatch.views.explanation import explained
from dispatch.views.snapshot_words import NOT_REACHED
from health.models import ChannelHealth
from tests.console import SignIn
from tests.factories import (
    NOW,
    AttemptFactory,
    ChannelFactory,
    JobFactory,
    SelectionRoundFactory,
    SupplyFactory,
)
from tests.rules.arbitrary_scenarios import drawn
from tests.snapshots import busy_scenario, recorded, recorded_switch, snapshot_of


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


def address(found: SelectionRound) -> str:
    return f"/console/jobs/{found.job.public_id}/rounds/{found.number}/"


def outcomes(text: str) -> list[str]:
    return re.findall(r' data-outcome="(\w+)"', text)


def test_r2_selected_and_ranked_and_excluded_add_up_to_the_candidates_in_print(viewer: Client) -> None:
    text = viewer.get(address(SelectionRoundFactory(snapshot=recorded()))).content.decode()
    rows = outcomes(text)
    assert "1 selected + 2 ranked + 5 excluded = 8 candidates" in text
    assert [rows.count(each) for each in ("selected", "ranked", "excluded")] == [1, 2, 5]


@pytest.mark.parametrize("seed", range(200))
def test_r2_the_printed_sum_holds_for_any_snapshot(seed: int) -> None:
    snapshot = snapshot_of(drawn(Random(seed)))
    told = explained(SelectionRound(snapshot=snapshot), [])
    funnel = render_to_string("console/funnel.html", {"told": told})
    printed = re.search(r"(\d+) selected \+ (\d+) ranked \+ (\d+) excluded = (\d+) candidates", funnel)
    assert printed is not None
    selected, ranked, excluded, candidates = map(int, printed.groups())
    rows = [row.outcome for row in told.rows]
    assert selected + ranked + excluded == candidates == len(snapshot["bindings"])
    assert (rows.count("selected"), rows.count("ranked")) == (selected, ranked)
    assert rows.count("excluded") == excluded
    assert len({row.key for row in told.rows}) == candidates


def test_r3_every_excluded_row_has_a_step_a_sentence_and_its_code(viewer: Client) -> None:
    response = viewer.get(address(SelectionRoundFactory(snapshot=recorded())))
    excluded = [row for row in response.context["told"].rows if row.outcome == "excluded"]
    assert len(excluded) == 5
    for row in excluded:
        assert row.step in (1, 2, 3)
        took = "A supply of the tier “exact” took the job: this one was not looked at."
        assert row.sentence == (took if row.reason == NOT_REACHED else REASONS[row.reason].sentence)
        assert row.sentence.replace("'", "&#x27;") in response.content.decode()


def test_r4_the_page_stays_the_same_byte_for_byte_when_the_world_changes(viewer: Client) -> None:
    supply = SupplyFactory(slug="kestrel-hd", channel=ChannelFactory(slug="kestrel-main"))
    found = SelectionRoundFactory(snapshot=recorded())
    AttemptFactory(job=found.job, supply=supply, selection_round=found)
    before = _without_what_moves(viewer.get(address(found)).content.decode())
    Supply.objects.update(state="disabled", concurrency=1)
    Channel.objects.update(state="draining")
    ChannelHealth.objects.create(channel=supply.channel, state="circuit_open", cooldown_until=NOW)
    assert _without_what_moves(viewer.get(address(found)).content.decode()) == before


def _without_what_moves(text: str) -> str:
    """Without the time of the data in the shell, and the token against forged requests."""
    main = text[text.index('<main id="main"') : text.index("</main>")]
    return re.sub(r'data-asof="[^"]*"|csrfmiddlewaretoken" value="[^"]*"', "", main)


def test_r5_the_second_round_says_that_no_third_attempt_is_possible(viewer: Client) -> None:
    job = JobFactory(state="running")
    first = SelectionRoundFactory(job=job, snapshot=recorded())
    AttemptFactory(job=job, selection_round=first, state="failed")
    second = SelectionRoundFactory(job=job, attempt_number=2, snapshot=recorded_switch())
    AttemptFactory(job=job, number=2, selection_round=second)
    text = viewer.get(address(second)).content.decode()
    assert "Second and last attempt, after kestrel-hd." in text
    assert "The switch is used: attempt 2 is the last." in text
    assert f'href="{address(first)}"' in text


def test_a_round_without_a_choice_says_what_the_job_waits_for(viewer: Client) -> None:
    full = busy_scenario(job={"tried": ["kestrel-hd", "kestrel-lite", "osprey-pro"], "attempt": 2})
    found = SelectionRoundFactory(snapshot=recorded(full), outcome="waiting_capacity")
    text = viewer.get(address(found)).content.decode()
    assert "Nobody was selected: waiting for capacity" in text
    assert "0 selected + 0 ranked" in text


def test_a_snapshot_of_another_form_is_shown_raw_and_not_guessed_at(viewer: Client) -> None:
    found = SelectionRoundFactory(snapshot={"schema": 99, "something": "else"})
    text = viewer.get(address(found)).content.decode()
    assert "recorded in a form that this version does not read" in text
    assert "something" in text
