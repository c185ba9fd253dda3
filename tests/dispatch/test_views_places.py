"""Channels, maintenance, health, capacity and supplies; tests name their item of the console's checklist."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from catalog.models import AuditEntry, CapacityGroup, Channel, Supply
from dispatch.models import FormReceipt, Maintenance
from dispatch.services.change_limit import limit_of
from dispatch.views import vocabulary
from health.circuit import Cause
from health.models import ChannelHealth, HealthEvent, SupplyHealth
from tests.console import SignIn
from tests.factories import (
    CapacityLeaseFactory,
    ChannelFactory,
    JobFactory,
    SelectionRoundFactory,
    SupplyFactory,
)
from tests.health.evidence import probing, win
from tests.operations_world import OperationsWorld, attempt, held, make_operations_world
from tests.snapshots import recorded

KESTREL = "/console/channels/kestrel-main/"
OSPREY = "/console/channels/osprey-main/"
START, END = f"{KESTREL}maintenance/start/", f"{OSPREY}maintenance/end/"
LAST = ["vid-hd-5s:exact", "vid-std:exact"]


@pytest.fixture
def world(db: None) -> OperationsWorld:
    return make_operations_world()


@pytest.fixture
def li(sign_in: SignIn, world: OperationsWorld) -> Client:
    return sign_in("operator")


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return " ".join(response.content.decode().split())


def token(client: Client, address: str) -> str:
    return str(client.get(address).context["token"])


def start(client: Client, **changes: Any) -> Any:
    until = (timezone.now() + timedelta(hours=1)).isoformat("T", "minutes")[:16]
    values = {"mode": "drain", "until": until, "at_end": "probe", "reason": "new keys", "losses": LAST}
    confirm = token(client, f"{KESTREL}maintenance/")
    return client.post(START, {"confirm": confirm, **values, **changes})


def test_c1_each_model_that_loses_its_last_supply_is_listed_and_has_to_be_ticked(
    li: Client, world: OperationsWorld
) -> None:
    page = text_of(li, f"{KESTREL}maintenance/")
    ticks = re.findall(r'name="losses" value="([^"]+)"', page)
    assert sorted(ticks) == LAST
    response = start(li, losses=LAST[:1])
    assert response.status_code == 422
    assert response.context["faults"] == {"losses": "not_ticked"}
    assert 'value="vid-hd-5s:exact" checked' in response.content.decode()
    assert Channel.objects.get(slug="kestrel-main").state == "enabled"
    assert start(li).status_code == 302
    assert Channel.objects.get(slug="kestrel-main").state == "draining"


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"until": ""}, {"until": "no_time"}),
        ({"until": "2026-99-99T10:00"}, {"until": "no_time"}),
        ({"until": "2020-01-01T10:00"}, {"until": "past"}),
        ({"reason": " ", "mode": ""}, {"mode": "choose", "reason": "no_reason"}),
    ],
)
def test_c5_an_end_time_and_a_reason_are_required(
    li: Client, changes: Mapping[str, str], faults: Mapping[str, str]
) -> None:
    response = start(li, **changes)
    assert (response.status_code, response.context["faults"]) == (422, faults)
    assert "<title>Error: " in response.content.decode().replace("[TEST] ", "")
    assert not Maintenance.objects.filter(channel__slug="kestrel-main").exists()


def test_e12_a_maintenance_needs_its_confirming_page_and_has_its_effect_once(li: Client) -> None:
    assert start(li, confirm="").status_code == 403
    confirm = token(li, f"{KESTREL}maintenance/")
    for _ in range(2):
        assert start(li, confirm=confirm)["Location"] == KESTREL
    assert Maintenance.objects.filter(channel__slug="kestrel-main").count() == 1
    assert FormReceipt.objects.filter(went_to=KESTREL).count() == 1
    assert AuditEntry.objects.filter(action="start maintenance", actor="li.m").count() == 1


def test_c4_who_why_and_until_when_stand_wherever_the_channel_appears(
    li: Client, world: OperationsWorld
) -> None:
    for address in (
        "/console/channels/",
        "/console/channels/osprey-main/",
        "/console/supplies/osprey-pro/",
        "/console/models/vid-hd-5s/",
        "/console/dispatch/",
        "/console/health/",
        "/console/capacity/",
    ):
        page = text_of(li, address)
        assert "wang.l" in page, address
        assert "key rotation" in page, address


def test_c4_an_old_selection_tells_of_the_maintenance_that_went_on_then(
    li: Client, world: OperationsWorld
) -> None:
    job = JobFactory(created_at=timezone.now())
    SelectionRoundFactory(job=job, snapshot=recorded())
    out = Maintenance.objects.create(
        channel=ChannelFactory(slug="heron-a"),
        mode="drain",
        at_end="probe",
        reason="new cable",
        started_at=job.created_at,
        started_by="chen.y",
        until_at=job.created_at + timedelta(hours=1),
    )
    pages = (f"/console/jobs/{job.public_id}/", f"/console/jobs/{job.public_id}/rounds/1/")
    for address in pages:
        assert "chen.y" in text_of(li, address)
        assert "new cable" in text_of(li, address)
    Maintenance.objects.filter(pk=out.pk).update(started_at=job.created_at - timedelta(hours=2))
    Maintenance.objects.filter(pk=out.pk).update(ended_at=job.created_at, ended_by="chen.y")
    assert "chen.y" not in text_of(li, pages[1]), "it was over by then"


def test_c3_ending_it_probes_first_and_each_step_shows_its_criterion(li: Client) -> None:
    page = text_of(li, "/console/channels/osprey-main/maintenance/")
    assert [page.index(each) for each in ("2 successes bring it on", "After 2", "After 3", "After 4")]
    confirm = token(li, "/console/channels/osprey-main/maintenance/")
    assert li.post(END, {"confirm": confirm}).status_code == 302
    assert ChannelHealth.objects.get(channel__slug="osprey-main").state == "probing"
    here = re.findall(
        r'<li aria-current="step"[^>]*data-road="([^"]+)"', text_of(li, KESTREL.replace("kestrel", "osprey"))
    )
    assert here == ["probing-0"]
    ChannelHealth.objects.filter(channel__slug="osprey-main").update(state="recovering", recovery_successes=3)
    here = re.findall(
        r'aria-current="step"[^>]*data-road="([^"]+)"', text_of(li, KESTREL.replace("kestrel", "osprey"))
    )
    assert here == ["recovering-3"]


def test_a_channel_shows_what_moves_it_on_what_runs_and_never_its_secret(
    li: Client, world: OperationsWorld
) -> None:
    page = text_of(li, "/console/channels/heron-main/")
    assert "its cooldown ends at" in page
    page = text_of(li, KESTREL)
    assert len(re.findall(r'id="lse_\w+-a"', page)) == 7
    assert "loses its last usable supply" in page
    assert "lost" not in re.findall(r"<dl.*?</dl>", page)[-1], "the sealed credential"


def test_g22_retired_channels_and_supplies_are_hidden_until_asked_for(li: Client) -> None:
    old = ChannelFactory(slug="old-main", state="disabled")
    SupplyFactory(slug="old-hd", channel=old)
    for name, address in (("old-main", "/console/channels/"), ("old-hd", "/console/supplies/")):
        assert name not in text_of(li, address)
        assert name in text_of(li, f"{address}?retired=1")
        assert name in text_of(li, f"{address}{name}/")
    assert "old-main" not in text_of(li, "/console/health/")


def test_the_board_is_worst_first_and_a_beat_keeps_the_order_on_the_screen(li: Client) -> None:
    rows = re.findall(r'data-row="([^"]+)"', text_of(li, "/console/health/"))
    assert rows[:2] == ["osprey-main", "heron-main"], "disabled, then open"
    ChannelHealth.objects.filter(channel__slug="heron-main").update(state="healthy", cooldown_until=None)
    headers = {"HX-Request": "true", "Console-Rows": ",".join(rows)}
    beat = li.get("/console/health/", headers=headers).content.decode()
    assert re.findall(r'data-row="([^"]+)"', beat) == rows
    assert "<html" not in beat


def test_c6_events_have_nothing_to_edit_and_refuse_every_changing_method(li: Client) -> None:
    event = HealthEvent.objects.latest("pk")
    for address in ("/console/health/events/", f"/console/health/events/{event.public_id}/"):
        page = text_of(li, address)
        main = page[page.index("<main") : page.index("</main>")]
        assert 'method="post"' not in main
        for method in ("put", "patch", "delete", "post"):
            assert getattr(li, method)(address).status_code == 405, (method, address)


def test_a_recovery_is_told_stage_by_stage_on_the_list_the_event_and_the_overview(
    li: Client, world: OperationsWorld
) -> None:
    supply = probing(SupplyFactory(slug="stork-hd", channel=ChannelFactory(slug="stork-main")))
    win(supply, times=5, at=timezone.now())
    stages = ["Recovering 75 %", "Healthy", "Recovering 50 %", "Recovering 75 %", "Recovering 25 %"]
    stages += ["Recovering 50 %", "Probing", "Recovering 25 %", "Probing", "Probing"]
    told = r"<span>([^<]+)</span></span> → .*?<span>([^<]+)</span></span>"
    for address in ("/console/health/events/?channel=stork-main", "/console/overview/changes/"):
        page = text_of(li, address)
        pairs = re.findall(told, page)
        assert [stage for pair in pairs for stage in pair][: len(stages)] == stages, address
        assert "1 success</span>" in page, "of the probe that stays one"
    last = HealthEvent.objects.latest("pk")
    page = text_of(li, f"/console/health/events/{last.public_id}/")
    assert re.findall(told, page)[0] == ("Recovering 75 %", "Healthy")


def test_events_are_filtered_and_the_three_empty_states_differ(sign_in: SignIn, li: Client) -> None:
    by_person = text_of(li, "/console/health/events/?by=person&channel=osprey-main")
    assert "key rotation" in by_person
    assert "wang.l" in by_person
    none = text_of(li, "/console/health/events/?by=rule&to=disabled")
    assert "No health event matches" in none
    assert re.findall(r'href="\?(by=rule|to=disabled)"', none) == ["by=rule", "to=disabled"]
    newest = HealthEvent.objects.latest("pk")
    before = HealthEvent.objects.order_by("-pk")[1:2].first() or newest
    headers = {"HX-Request": "true", "Console-Rows": before.public_id}
    beat = li.get("/console/health/events/", headers=headers).content.decode()
    assert ("1 new event. Show" in beat) == (before != newest)


def test_c7_the_numbers_add_up_to_the_limit_in_text_and_in_the_bars_name(
    li: Client, world: OperationsWorld
) -> None:
    page = text_of(li, "/console/capacity/")
    sums = r"(\d+) in use \+ (\d+) leased \+ (\d+) unknown \+ (\d+) free = (\d+) slots"
    names = re.findall(rf'aria-label="{sums}"', page)
    texts = re.findall(rf"<span aria-hidden=\"true\">{sums}</span>", page)
    assert names == texts
    assert len(names) == sum(rows.objects.count() for rows in (CapacityGroup, Channel, Supply))
    for *parts, limit in names:
        assert sum(map(int, parts)) == int(limit)
    assert ("3", "1", "3", "2", "9") in names, "the group of Kestrel"
    links = re.findall(r'id="lse_\w+-a" href="/console/uncertain/(att_\w+)/"', page)
    assert set(links) == {each.public_id for each in (world.uncertain, world.taken, world.lost)}
    assert "no claim about the vendor" in page


def test_above_a_lowered_limit_the_text_says_by_how_many(li: Client, world: OperationsWorld) -> None:
    CapacityGroup.objects.update(capacity=5)
    assert "3 in use + 1 leased + 3 unknown slots: 2 more than the limit 5" in text_of(
        li, "/console/capacity/"
    )


def test_a_limit_is_changed_with_a_reason_once_and_not_over_somebody_elses_change(
    li: Client, world: OperationsWorld
) -> None:
    for kind, name, row in (
        ("group", world.group.public_id, world.group),
        ("channel", "kestrel-main", world.kestrel.channel),
        ("supply", "kestrel-hd", world.kestrel),
    ):
        address = f"/console/capacity/{kind}/{name}/"
        confirm = token(li, address)
        assert li.post(f"{address}set/", {"confirm": confirm, "limit": "0", "reason": "x"}).status_code == 422
        assert li.post(f"{address}set/", {"confirm": confirm, "limit": "12"}).status_code == 422
        values = {"confirm": confirm, "limit": "12", "reason": "they raised our quota"}
        assert li.post(f"{address}set/", values).status_code == 302
        assert li.post(f"{address}set/", values).status_code == 302
        row.refresh_from_db()
        assert limit_of(row) == 12
        stale = {**values, "confirm": confirm_of_another(li, address, row)}
        assert li.post(f"{address}set/", stale).status_code == 409
    told = list(AuditEntry.objects.filter(action="change limit").values_list("after__reason", flat=True))
    assert told == ["they raised our quota"] * 3


def confirm_of_another(client: Client, address: str, row: Any) -> str:
    """A form that was opened before somebody else changed the limit."""
    confirm = token(client, address)
    field = "capacity" if isinstance(row, CapacityGroup) else "concurrency"
    type(row).objects.filter(pk=row.pk).update(**{field: 11})
    return confirm


def test_a_supply_is_disabled_with_a_reason_and_ticks_and_comes_back_by_probing(
    li: Client, world: OperationsWorld
) -> None:
    address = "/console/supplies/kestrel-hd/switch/"
    values = {"confirm": token(li, address), "losses": LAST}
    assert li.post(f"{address}now/", values).context["faults"] == {"reason": "no_reason"}
    values = {"confirm": token(li, address), "reason": "wrong colours"}
    assert li.post(f"{address}now/", values).context["faults"] == {"losses": "not_ticked"}
    assert li.post(f"{address}now/", {**values, "losses": LAST}).status_code == 302
    assert SupplyHealth.objects.get(supply=world.kestrel).state == "disabled"
    assert HealthEvent.objects.latest("pk").reason == "wrong colours"
    assert li.post(f"{address}now/", {"confirm": token(li, address)}).status_code == 302
    assert SupplyHealth.objects.get(supply=world.kestrel).state == "probing"


def test_a_supply_tells_how_it_did_and_who_uses_it(li: Client, world: OperationsWorld) -> None:
    page = text_of(li, "/console/supplies/kestrel-hd/")
    assert 'aria-label="kestrel-hd: 66.7 % of 9 succeeded in 24 h, the lowest half-hour 0 %"' in page
    assert "internal_retryable" in page
    assert "0.0424 USD a second" in page
    assert "used-vid-hd-5s-exact-a" in page
    assert f'id="provider-model">{world.kestrel.provider_model}</code>' in page
    assert f'id="model-version">{world.kestrel.model_version}</code>' in page
    Supply.objects.filter(pk=world.kestrel.pk).update(model_version="")
    assert "Model version" not in text_of(li, "/console/supplies/kestrel-hd/")


def test_only_a_supply_that_lacks_something_is_offered_to_be_brought_into_use(
    li: Client, sign_in: SignIn, world: OperationsWorld
) -> None:
    address = "/console/supplies/kestrel-hd/"
    admin, viewer = sign_in("admin", username="adm"), sign_in("viewer", username="vie")
    assert "Bring into use" not in text_of(admin, address)
    assert '/try/">Try it by a call</a>' in text_of(admin, address)
    assert "/try/" not in text_of(viewer, address), "it may not make calls"
    world.kestrel.bindings.update(enabled=False)
    for client in (admin, viewer):
        assert '/try/">Bring into use</a>' in text_of(client, address)


def test_p1_the_pages_cost_the_same_queries_whatever_runs(li: Client, world: OperationsWorld) -> None:
    pages = [
        "/console/channels/",
        KESTREL,
        "/console/health/",
        "/console/health/events/",
        "/console/capacity/",
        "/console/supplies/",
        "/console/supplies/kestrel-hd/",
        "/console/uncertain/",
    ]
    before = [queries(li, page) for page in pages]
    more = SupplyFactory(channel=world.kestrel.channel)
    for _ in range(3):
        held(attempt(world.model, more, "running", timezone.now()))
        CapacityLeaseFactory(attempt=attempt(world.model, more, "outcome_uncertain", timezone.now()))
    assert [queries(li, page) for page in pages] == before
    assert max(before) <= 30


def queries(client: Client, page: str) -> int:
    text_of(client, page)
    with CaptureQueriesContext(connection) as captured:
        text_of(client, page)
    return len(captured)


def test_with_nothing_there_each_page_says_what_it_is_for(sign_in: SignIn, db: None) -> None:
    client = sign_in("viewer")
    for page in ("channels", "supplies", "health", "capacity"):
        assert "manage.py catalogue import" in text_of(client, f"/console/{page}/")
    assert "No health event yet" in text_of(client, "/console/health/events/")


def test_a_viewer_reads_why_the_actions_are_missing(sign_in: SignIn, world: OperationsWorld) -> None:
    client = sign_in("viewer")
    assert "Maintenance needs the role operator." in text_of(client, KESTREL)
    assert "Disabling needs the role operator." in text_of(client, "/console/supplies/kestrel-hd/")
    assert "Deciding needs the role operator." in text_of(
        client, f"/console/uncertain/{world.uncertain.public_id}/"
    )


def test_every_code_of_these_pages_has_a_word() -> None:
    assert set(vocabulary.CAUSES) == {cause.value for cause in Cause}
    with translation.override("zh-hans"):
        assert not [each for each in vocabulary.CAUSES.values() if str(each).isascii()]


def test_g13_a_channel_a_supply_and_a_health_event_open_by_id_and_by_name(
    li: Client, world: OperationsWorld
) -> None:
    event = HealthEvent.objects.latest("pk")
    for pasted, address in (
        (world.kestrel.channel.public_id, KESTREL),
        ("kestrel-main", KESTREL),
        (world.kestrel.public_id, "/console/supplies/kestrel-hd/"),
        ("kestrel-hd", "/console/supplies/kestrel-hd/"),
        (event.public_id, f"/console/health/events/{event.public_id}/"),
    ):
        assert li.get("/console/search/", {"q": pasted})["Location"] == address
