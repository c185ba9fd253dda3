"""The overview: its parts, its charts, and that each fails alone; tests name their item of the checklist."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.models import PublicModel
from dispatch.hours import hour_of
from dispatch.models import HourOfWork, Job
from dispatch.queries.needs import CHANNELS_SHOWN, channel_states
from health.models import Alert, RefusalRecord
from tests.console import SignIn
from tests.factories import AlertFactory, AttemptFactory, ChannelFactory, ChannelHealthFactory, JobFactory
from tests.figures_world import make_figures, now_within_its_hour
from tests.operations_world import OperationsWorld, beat, make_operations_world, waits

HOME, CHARTS, CHANGES = "/console/", "/console/overview/charts/", "/console/overview/changes/"
FAILED = "This part could not be read."


@pytest.fixture
def world(db: None) -> OperationsWorld:
    world = make_operations_world()
    make_figures(world.model, now_within_its_hour())
    return world


@pytest.fixture
def li(sign_in: SignIn, world: OperationsWorld) -> Client:
    return sign_in("viewer")


def text_of(client: Client, address: str = HOME, **headers: str) -> str:
    response = client.get(address, headers=headers or None)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def take_away(table: str) -> None:
    """Every query of it fails from now on; the test's transaction brings it back."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO taken_away")


@pytest.mark.parametrize(
    ("table", "address", "panel", "others"),
    [
        ("health_channelhealth", HOME, "channels", ["Waiting: 6", "attempts whose outcome is not known"]),
        ("health_refusalrecord", HOME, "needs", ["Waiting: 6", "heron-main"]),
        ("dispatch_hourofqueue", CHARTS, "charts", ["<h1>"]),
        ("health_healthevent", CHANGES, "changes", ["<h1>"]),
    ],
)
def test_g17_a_part_whose_query_fails_says_so_with_a_reference_and_the_others_stand(
    li: Client, caplog: pytest.LogCaptureFixture, table: str, address: str, panel: str, others: list[str]
) -> None:
    take_away(table)
    page = text_of(li, address)
    assert page.count(FAILED) == 1
    assert re.search(rf'id="retry-{panel}" href="{address}"', page)
    (reference,) = re.findall(r'data-reference="(err_[0-9a-f]{10})"', page)
    assert reference in caplog.text
    assert "taken_away" not in page, "what the database said is for the log"
    for other in others:
        assert other in page
    beat = text_of(li, address, **{"HX-Request": "true"})
    assert FAILED in beat
    assert "<html" not in beat


def test_g17_without_the_jobs_the_verdict_says_that_it_is_not_known(
    li: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_now: Any) -> None:
        raise ValueError("a query that does not come back")

    monkeypatch.setattr("dispatch.queries.needs.jobs_now", fails)
    page = text_of(li)
    assert "Not known: the jobs could not be read." in page
    assert "Flowing" not in page
    assert "heron-main" in page


def test_g17_a_part_comes_back_with_the_next_beat(li: Client) -> None:
    take_away("health_channelhealth")
    assert FAILED in text_of(li)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE taken_away RENAME TO health_channelhealth")
    assert FAILED not in text_of(li, **{"HX-Request": "true"})


def test_what_needs_a_person_stands_oldest_first_and_leads_to_its_place(li: Client) -> None:
    now = timezone.now()
    AlertFactory(opened_at=now - timedelta(hours=2))
    RefusalRecord.objects.create(
        fingerprint="f" * 64, provider="ark", model_family="x", refusals=None, refused_at=now,
        created_at=now - timedelta(days=1),
    )  # fmt: skip
    page = text_of(li)
    rows = re.findall(r'<li class="one" id="need-([\w-]+)" data-row', page)
    assert rows == ["frozen", "alarm", "vid-std", "uncertain"]
    assert 'id="needs-frozen" href="/console/refusals/?state=frozen"' in page


def test_of_many_channels_the_worst_are_shown_wherever_their_names_stand(db: None) -> None:
    for number in range(CHANNELS_SHOWN):
        ChannelFactory(slug=f"a-{number:02}")
    until = timezone.now() + timedelta(minutes=1)
    ChannelHealthFactory(channel=ChannelFactory(slug="z"), state="circuit_open", cooldown_until=until)
    shown = channel_states()
    assert (shown[0].slug, len(shown)) == ("z", CHANNELS_SHOWN)


def test_when_nothing_needs_a_person_the_last_incident_is_told(sign_in: SignIn, db: None) -> None:
    client = sign_in("viewer")
    assert "The last incident" not in text_of(client)
    alert = AlertFactory(resolved=True, acknowledged=True)
    page = text_of(client)
    assert "Nothing. No critical alert is open" in page
    assert f'id="last-incident" href="/console/alerts/{alert.public_id}/"' in page
    Alert.objects.all().delete()


def test_the_verdict_is_the_one_of_dispatch_and_names_what_needs_a_person(li: Client) -> None:
    verdict = verdict_of(li)
    assert 'data-tone="doubt"' in verdict, "some move"
    said = li.get("/console/dispatch/").context["verdict"]
    assert said.startswith("Waiting: 6. Of these do not move: 3.")
    assert said in verdict
    assert "Flowing" not in verdict
    assert '<a class="nowrap" id="verdict-needs" href="#needs">2 things need a person.</a>' in verdict


def test_the_verdict_is_an_alarm_where_no_waiting_job_moves_or_nobody_scans(
    sign_in: SignIn, world: OperationsWorld
) -> None:
    client, now = sign_in("viewer"), timezone.now()
    Job.objects.filter(state="queued").update(state="cancelled", finished_at=now, next_action_at=None)
    waits(world.model, "channel_circuit_open", 2, now)
    assert 'data-tone="bad"' in verdict_of(client)
    Job.objects.filter(state="queued").update(state="cancelled", finished_at=now, next_action_at=None)
    beat(now - timedelta(seconds=90))
    verdict = verdict_of(client)
    assert 'data-tone="bad"' in verdict
    assert "Nothing moves because no dispatcher scans." in verdict


def test_jobs_that_flow_beside_a_model_that_is_not_published_are_no_good_news(
    sign_in: SignIn, db: None
) -> None:
    client = sign_in("viewer")
    beat(timezone.now())
    JobFactory(state="running")
    assert 'data-tone="good"' in verdict_of(client)
    PublicModel.objects.update(published=False, enabled=False, published_revision=1, revision=2)
    verdict = verdict_of(client)
    assert 'data-tone="doubt"' in verdict
    assert "1 thing needs a person." in verdict


def verdict_of(client: Client) -> str:
    return text_of(client).split('<p class="verdict" id="verdict"')[1].split("</p>")[0]


def test_c4_a_channel_in_maintenance_says_who_until_when_and_why(li: Client, world: OperationsWorld) -> None:
    channels = text_of(li).split('id="channel-states"')[1].split("</section>")[0]
    row = channels.split('id="channel-osprey-main"')[1].split("</li>")[0]
    assert "Maintenance by wang.l until" in row
    assert f"<q>{world.maintenance.reason}</q>" in row
    assert channels.count("Maintenance by") == 1


def test_v7_each_chart_is_an_image_with_a_number_in_its_name_and_a_table_with_the_same_values(
    li: Client,
) -> None:
    page = text_of(li, CHARTS)
    names = re.findall(r'<svg class="(?:chart|cost-bar)" role="img" aria-label="([^"]+)"', page)
    assert names[0] == "Success by the hour: 90.0 % of 460 in the last 24 h; a week before 100.0 % of 230"
    assert names[1] == ("Jobs waiting, the most of each hour: at most 22 in the last 24 h; a week before 22")
    assert names[2].startswith("kestrel-hd: a success cost $0.2182, of it 8% for attempts")
    success, waiting = rows_of(page, "success-table"), rows_of(page, "waiting-table")
    assert (len(success), len(waiting)) == (24, 24)
    assert sum(int(re.findall(r"n=(\d+)", now)[0]) for now, _before in success) == 460
    assert "90.0 %" in success[-1][0]
    assert "100.0 %" in success[-1][1]
    assert "—" in success[-7][0], "a gap is a gap"
    assert (waiting[-1], max(int(now) for now, _before in waiting if now != "—")) == (("3", "3"), 22)
    costs = page.split('class="cost-bars"')[1]
    assert "a week before $0.2000" in costs
    assert "cost rule v1" in costs


def rows_of(page: str, table: str) -> list[tuple[str, str]]:
    """The two columns beside the hour."""
    body = page.split(f'id="{table}"')[1].split("</table>")[0]
    cell = r'<td class="number">(.*?)</td>'
    return re.findall(rf'<tr><th scope="row">[^<]+</th>{cell}{cell}</tr>', body)


def test_v7_a_gap_is_drawn_as_a_gap_and_few_as_a_hollow_point(li: Client) -> None:
    chart = text_of(li, CHARTS).split('id="chart-success"')[1].split("</figure>")[0]
    now = chart.split('class="line-now"')[1].split("</g>")[0]
    assert now.count("<path") == 2
    assert chart.count("<circle") == 23
    HourOfWork.objects.update(samples=2, successes=2)
    chart = text_of(li, CHARTS).split('id="chart-success"')[1].split("</figure>")[0]
    assert chart.count('class="few"') == 23


@pytest.mark.parametrize(("zone", "said", "shift"), [("", "UTC", 0), ("Asia/Shanghai", "UTC+8", 8)])
def test_i6_the_axis_names_the_zone_that_its_hours_are_in(
    li: Client, zone: str, said: str, shift: int
) -> None:
    if zone:
        li.cookies["zone"] = zone
    page = text_of(li, CHARTS)
    assert set(re.findall(r'class="zone"[^>]*>([^<]+)<', page)) == {said}
    third = hour_of(timezone.now()) - timedelta(hours=20) + timedelta(hours=shift)
    assert f">{third:%H:%M}</text>" in page


def test_before_anything_was_counted_the_charts_say_so(sign_in: SignIn, db: None) -> None:
    assert "Nothing was counted yet" in text_of(sign_in("viewer"), CHARTS)


def test_what_changed_in_the_last_day_stands_on_one_line_of_time(li: Client) -> None:
    page = text_of(li, CHANGES)
    assert "publish model" in page
    assert "start maintenance" in page
    assert "key rotation" in page
    assert re.search(r'href="/console/health/events/hev_\w+/">osprey-main', page)
    times = re.findall(r'data-row="[^"]+"><time datetime="([^"]+)"', page)
    assert times == sorted(times, reverse=True)
    assert len(times) > 5


def test_p1_p3_the_overview_asks_as_many_questions_for_much_as_for_little_and_counts_nothing_without_end(
    li: Client, world: OperationsWorld
) -> None:
    pages = (HOME, CHARTS, CHANGES)
    before = [queries(li, page) for page in pages]
    for _ in range(5):
        AttemptFactory(job=JobFactory(public_model=world.model, state="running", created_at=timezone.now()))
        JobFactory(public_model=PublicModel.objects.first(), created_at=timezone.now())
    after = [queries(li, page) for page in pages]
    assert [len(each) for each in after] == [len(each) for each in before]
    assert max(map(len, after)) <= 30
    for sql in (each for page in after for each in page):
        grown = re.search(r'COUNT\(.*FROM "(dispatch_job|dispatch_attempt|health_healthevent)"', sql)
        assert not grown or "LIMIT" in sql, sql


def queries(client: Client, page: str) -> list[str]:
    text_of(client, page)
    with CaptureQueriesContext(connection) as captured:
        text_of(client, page)
    return [each["sql"] for each in captured.captured_queries]
