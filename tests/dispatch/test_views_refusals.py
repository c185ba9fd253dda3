"""Refusals and degraded deliveries: what was held back or left out, and who is stopped by it."""

import csv
from datetime import timedelta
from io import StringIO

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.models import AuditEntry
from dispatch.models import Job
from health.models import RefusalRecord
from tests.console import SignIn
from tests.factories import VIDEO_REQUEST
from tests.money_world import MoneyWorld, make_money_world

LIST = "/console/refusals/"
DEGRADED = "/console/degraded/"


@pytest.fixture
def world(db: None) -> MoneyWorld:
    return make_money_world()


@pytest.fixture
def li(sign_in: SignIn) -> Client:
    return sign_in("operator")


def shown(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_the_list_tells_state_count_and_whom_it_stops_and_keeps_its_state_in_the_address(
    world: MoneyWorld, li: Client
) -> None:
    rows = {row.record.pk: row for row in li.get(LIST).context["rows"]}
    assert set(rows) == {world.cooling.pk, world.frozen.pk}
    assert (rows[world.cooling.pk].state, rows[world.frozen.pk].state) == ("cooldown", "frozen")
    assert rows[world.cooling.pk].due_at == world.cooling.refused_at + timedelta(minutes=15)
    assert (rows[world.frozen.pk].refused, rows[world.frozen.pk].waiting) == (1, 0)
    filtered = li.get(f"{LIST}?state=frozen&state=ended&provider=ark&size=100&older=999999999")
    assert [row.record.pk for row in filtered.context["rows"]] == [world.ended.pk, world.frozen.pk]
    text = filtered.content.decode()
    assert text.count("checked") == 2
    # G8: what takes a filter away drops the cursor, and keeps the rest.
    assert 'href="?state=ended&amp;provider=ark&amp;size=100"' in text


def test_g16_the_three_empty_states_differ(li: Client) -> None:
    assert "its fingerprint stands here" in shown(li, LIST)
    filtered = shown(li, f"{LIST}?provider=nobody&state=frozen")
    assert "No refusal matches these 2 filters" in filtered
    world = make_money_world()
    RefusalRecord.objects.filter(ended_at=None).update(
        ended_at=timezone.now() - timedelta(hours=1), ended_why="the supply crossed a boundary"
    )
    good = shown(li, LIST)
    assert "No content is held back" in good
    assert world.ended.public_id in good


def test_l4_a_beat_keeps_the_rows_and_tells_how_many_are_new(world: MoneyWorld, li: Client) -> None:
    beat = {"HX-Request": "true", "Console-Rows": world.cooling.public_id}
    answer = li.get(LIST, headers=beat)
    text = answer.content.decode()
    assert text.count("data-row=") == 1
    assert "1 new. Show" in text  # the frozen one came later
    assert li.get(LIST, headers=beat | {"HX-PTag": answer["HX-PTag"]}).status_code == 304


def test_p1_the_lists_ask_as_many_queries_for_many_rows_as_for_few(world: MoneyWorld, li: Client) -> None:
    before = [_count(li, address) for address in (LIST, DEGRADED)]
    for number in range(30, 40):
        RefusalRecord.objects.create(
            fingerprint=f"{number:064d}",
            provider="ark",
            model_family=f"family-{number}",
            refusals=1,
            refused_at=timezone.now(),
            created_at=timezone.now(),
        )
    assert [_count(li, address) for address in (LIST, DEGRADED)] == before


def test_p8_the_content_is_hidden_until_somebody_looks_and_that_is_recorded(
    world: MoneyWorld, sign_in: SignIn
) -> None:
    viewer = sign_in("viewer")
    page = f"{LIST}{world.frozen.public_id}/"
    assert VIDEO_REQUEST["prompt"] not in shown(viewer, page)
    told = viewer.post(f"{page}content/")
    assert VIDEO_REQUEST["prompt"] in told.content.decode()
    entry = AuditEntry.objects.get(action="show content")
    assert (entry.actor, entry.subject) == ("li.m", f"refusal:{world.frozen.public_id}")
    assert VIDEO_REQUEST["prompt"] not in str(entry.after)


def test_a_refusal_is_lifted_once_with_a_reason_from_its_own_page(world: MoneyWorld, li: Client) -> None:
    page = f"{LIST}{world.frozen.public_id}/"
    token = li.get(page).context["token"]
    assert li.post(f"{page}lift/", {"why": "a mistake"}).status_code == 403  # E12
    silent = li.post(f"{page}lift/", {"confirm": token, "why": " "})
    assert silent.status_code == 422
    assert "Error: " in silent.content.decode()
    form = {"confirm": token, "why": "the provider corrected its filter"}
    for _twice in range(2):
        assert li.post(f"{page}lift/", form).status_code == 302
    world.frozen.refresh_from_db()
    assert (world.frozen.ended_by, world.frozen.ended_why) == ("li.m", form["why"])
    lifted = AuditEntry.objects.filter(action="lift refusal", subject=f"refusal:{world.frozen.public_id}")
    assert lifted.count() == 1
    assert 'id="lift-form"' not in shown(li, page)


def test_degraded_deliveries_are_grouped_told_and_exported(world: MoneyWorld, li: Client) -> None:
    response = li.get(DEGRADED)
    (group,) = response.context["found"].groups
    assert (group.input, group.supply, group.jobs) == ("reference_videos", "kestrel-hd", 1)
    text = response.content.decode()
    assert "in the result and the charge" in text
    assert "instead of $0.40" in text
    assert world.degraded.public_id in text
    exported = b"".join(li.get(f"{DEGRADED}export/")).decode()  # type: ignore[arg-type]
    (line,) = csv.DictReader(StringIO(exported))
    assert (line["job"], line["dropped_inputs"]) == (world.degraded.public_id, "reference_videos")
    assert (line["price_asked"], line["charged"]) == ("0.40", "0.30")
    assert line["time_utc"].endswith("+00:00")
    assert "No degraded delivery matches this filter" in shown(li, f"{DEGRADED}?supply=nobody")
    Job.objects.filter(pk=world.degraded.pk).update(finished_at=timezone.now() - timedelta(days=9))
    assert "Nothing was delivered degraded" in shown(li, DEGRADED)


def _count(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)
