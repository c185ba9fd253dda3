"""Kept figures on the pages of models, capacity, channels and supplies; tests name their checklist item."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from catalog.models import PublicModel
from dispatch.hours import COUNTED_EVERY
from dispatch.models import Attempt, HourOfWork, PeakOfSlots
from tests.console import SignIn
from tests.factories import AttemptFactory, JobFactory
from tests.figures_world import make_figures, now_within_its_hour
from tests.operations_world import OperationsWorld, make_operations_world

MODEL = "/console/models/vid-hd-5s/"
PICKS = f"{MODEL}picks/"
SEEN, COSTS = "/console/supplies/kestrel-hd/seen/", "/console/supplies/kestrel-hd/costs/"


@pytest.fixture
def world(db: None) -> OperationsWorld:
    world = make_operations_world()
    make_figures(world.model, now_within_its_hour())
    return world


@pytest.fixture
def li(sign_in: SignIn, world: OperationsWorld) -> Client:
    return sign_in("viewer")


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return " ".join(response.content.decode().split())


def test_the_share_that_each_binding_was_given_stands_in_the_table_and_adds_up(li: Client) -> None:
    page = text_of(li, MODEL)
    shares = dict(re.findall(r'<span data-share="([^"]+)">([\d.]+) %</span>', page))
    assert shares["kestrel-hd@exact"] == "60.0"
    assert shares["osprey-pro@exact"] == "30.0"
    assert shares["wren-lite@fallback"] == "10.0"
    assert shares["heron-v3@exact"] == "0.0"
    assert sum(map(float, shares.values())) == pytest.approx(100)
    assert f'hx-get="{PICKS}"' in page
    assert re.search(rf'<a id="picks-show" href="{PICKS}"', page), "the way without script"


def test_until_the_first_count_the_page_of_a_model_says_when_figures_are_counted(li: Client) -> None:
    counted_at = HourOfWork.objects.latest("counted_at").counted_at
    HourOfWork.objects.update(picks=0)
    due = f"{max(counted_at + COUNTED_EVERY, timezone.now()):%H:%M}"
    said = re.sub(r"<[^>]+>", "", text_of(li, PICKS))
    assert f"They are counted every five minutes, next at {due}" in said
    assert f"next count {due}" in re.sub(r"<[^>]+>", "", text_of(li, MODEL))


def test_v7_i6_the_selections_are_a_chart_with_its_numbers_as_a_table_and_its_zone(li: Client) -> None:
    li.cookies["zone"] = "Asia/Shanghai"
    page = text_of(li, PICKS)
    (name,) = re.findall(r'<svg class="chart" role="img" aria-label="([^"]+)"', page)
    assert name == "Selections by the hour, 460 in 24 h: kestrel-hd 60%, osprey-pro 30%, wren-lite 10%"
    table = page.split('id="picks-table"')[1]
    assert re.findall(r'<tr class="sum">.*?</tr>', table)[0].count('<td class="number">') == 3
    assert ">276</td><td" in table.split("<tfoot>")[1].replace(' class="number"', "")
    columns = re.findall(r'<rect class="series-(\d)" x="([\d.]+)%"', page)
    assert len(columns) == 3 * 23
    assert set(re.findall(r'class="zone"[^>]*>([^<]+)<', page)) == {"UTC+8"}


def test_who_is_next_if_the_first_supply_fails_is_said_with_its_room(
    li: Client, world: OperationsWorld
) -> None:
    page = text_of(li, MODEL)
    line = page.split('id="next-in-line"')[1][:200]
    assert re.search(r"If kestrel-hd fails, wren-lite is next \(tier fallback\), with \d+ free slots", line)
    PublicModel.objects.get(slug="vid-hd-5s").bindings.exclude(supply=world.kestrel).update(enabled=False)
    assert "nobody is next: jobs wait" in text_of(li, MODEL)


def test_the_list_of_models_tells_of_the_last_day(li: Client) -> None:
    row = text_of(li, "/console/models/").split('id="model-vid-hd-5s"')[1].split("</tr>")[0]
    assert ">414</td>" in row, "460 selections, 46 of them second ones"
    assert "90.0 %" in row
    assert "$0.2222" in row


def test_g17_without_its_figures_the_page_of_a_model_stands(li: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE dispatch_hourofwork RENAME TO taken_away")
    page = text_of(li, MODEL)
    assert 'id="retry-shares"' in page
    assert "kestrel-hd" in page
    assert "n=9" in page, "the success of the last day"
    assert "could not be read (reference err_" in text_of(li, "/console/models/")
    assert 'id="retry-picks"' in text_of(li, PICKS)
    assert 'id="retry-costs"' in text_of(li, COSTS)


def test_capacity_tells_the_peak_of_the_day_and_when_it_is_full(li: Client, world: OperationsWorld) -> None:
    page = text_of(li, "/console/capacity/")
    supply = page.split('id="capacity-row-kestrel-hd"')[1].split("</tr>")[0]
    assert "24 h peak: 7 of 8, at " in supply, "the 8 of thirty hours ago are past"
    for each in (page, text_of(li, "/console/channels/kestrel-main/")):
        assert each.count("counted once a minute, so a shorter peak may have been higher") == 1
    assert "full in" in supply
    other = page.split('id="capacity-row-lark-mini"')[1].split("</tr>")[0]
    assert "24 h peak: none taken" in other
    assert "not filling up" in other
    closed = page.split('id="capacity-row-heron-v3"')[1].split("</tr>")[0]
    assert "takes nothing new now" in closed


def test_time_to_full_counts_what_began_and_what_ended_lately(li: Client, world: OperationsWorld) -> None:
    now = timezone.now()
    Attempt.objects.filter(supply=world.kestrel).update(request_started_at=None)
    for minutes in (1, 2, 3):
        AttemptFactory(
            job=JobFactory(state="running", public_model=world.model, created_at=now),
            supply=world.kestrel,
            request_started_at=now - timedelta(minutes=minutes),
        )
    supply = text_of(li, "/console/capacity/").split('id="capacity-row-kestrel-hd"')[1].split("</tr>")[0]
    assert "full in 5 min 0 s at the rate" in supply, "1 of 8 is free, 3 began in 15 minutes"
    Attempt.objects.filter(supply=world.kestrel, request_started_at__isnull=False).update(
        state="succeeded", finished_at=now
    )
    supply = text_of(li, "/console/capacity/").split('id="capacity-row-kestrel-hd"')[1].split("</tr>")[0]
    assert "not filling up" in supply
    assert "24 h peak: none taken" in text_of(li, "/console/channels/kestrel-main/")


def test_what_goes_and_what_stays_at_the_peak_is_said_before_a_channel_is_taken_out(
    sign_in: SignIn, world: OperationsWorld
) -> None:
    zhao = sign_in("operator", username="zhao")
    page = text_of(zhao, "/console/channels/kestrel-main/maintenance/")
    assert "24 h peak: 7 slots taken on what goes, 0 free on what stays" in page
    PeakOfSlots.objects.exclude(subject_id=world.kestrel.pk).delete()
    PeakOfSlots.objects.update(taken=1)
    page = text_of(zhao, "/console/channels/kestrel-main/maintenance/")
    assert "24 h peak: 1 slot taken on what goes," in page


def test_g17_without_the_peaks_the_slots_are_shown_all_the_same(li: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE dispatch_peakofslots RENAME TO taken_away")
    page = text_of(li, "/console/capacity/")
    assert 'id="retry-fullness"' in page
    assert 'class="slot-bar"' in page


def test_declared_and_seen_stand_side_by_side_and_are_never_blended(
    li: Client, world: OperationsWorld
) -> None:
    made = Attempt.objects.filter(supply=world.kestrel, generated_at__isnull=False)
    assert made.count() == 6
    first = made.first()
    assert first is not None
    Attempt.objects.filter(pk=first.pk).update(
        sent_request={**first.job.request, "duration_s": 20, "reference_images": ["a", "b"]}
    )
    page = text_of(li, SEEN)

    def line(field: str) -> str:
        return page.split(f'id="seen-{field}"')[1].split("</tr>")[0]

    assert "4–15</td>" in line("durations_s")
    assert re.search(r"5</span> <small[^>]*>×5<", line("durations_s"))
    assert "not declared: 20" in line("durations_s")
    assert "480p, 720p, 1080p" in line("resolutions")
    assert re.search(r"1080p</span> <small[^>]*>×6<", line("resolutions"))
    assert re.search(r"9</td>.*>2</span> <small[^>]*>×1<", line("max_images"))
    assert "Of 6 results." in page
    old = timezone.now() - timedelta(days=31)
    made.update(finished_at=old)
    assert "never" in text_of(li, SEEN).split('id="seen-modes"')[1].split("</tr>")[0]


def test_what_a_success_cost_stands_with_its_waste_its_number_and_its_rule(li: Client) -> None:
    page = text_of(li, COSTS)
    assert "$0.2182" in page
    assert "n=253" in page
    assert "8% without delivery" in page
    assert "a week before $0.2000" in page
    assert "cost rule v1" in page
    supply = text_of(li, "/console/supplies/kestrel-hd/")
    for panel, address in (("costs", COSTS), ("seen", SEEN)):
        assert re.search(rf'<a id="{panel}-show" href="{address}"', supply)
