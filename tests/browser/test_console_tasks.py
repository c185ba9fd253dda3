"""The tasks that operators do most, each by keyboard alone and within its number of steps (G19)."""

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import Page, expect

from billing.models import CostRuleVersion
from catalog.models import Channel, PublicModel, Supply
from dispatch.models import Attempt
from health.models import Alert
from tests.browser.conftest import Visit, World
from tests.browser.keyboard import Hands
from tests.engine import Engine
from tests.factories import ChannelFactory, SupplyFactory
from tests.models_world import BASE, SLUG, ModelsWorld, make_models_world
from tests.operations_world import OperationsWorld, make_operations_world

OSPREY = '[id="osprey-pro@exact:priority"]'


def also(role: str, name: str = "li.m") -> None:
    User.objects.get(username=name).groups.add(Group.objects.get_or_create(name=role)[0])


def hands(page: Page) -> Hands:
    return Hands(page)


@pytest.fixture
def operations(transactional_db: None) -> OperationsWorld:
    return make_operations_world()


def test_g19_a_priority_is_changed_and_published_in_six_steps(
    visitor: Visit, models_world: ModelsWorld
) -> None:
    person = visitor("operator")
    also("publisher")
    page = person.visit("/console/jobs/")
    by = hands(page)
    by.search(SLUG)
    page.wait_for_url(f"**{BASE}")
    by.keys("e")
    page.wait_for_url("**/edit/")
    by.move(OSPREY, "Alt+ArrowUp")
    expect(page.locator("#announce")).to_have_text("osprey-pro is now number 1 of 3.")
    expect(page.locator(OSPREY)).to_be_focused()
    by.keys("Control+Enter")
    page.wait_for_url("**/review/")
    by.fill("#note", "Osprey is cheaper")
    page.keyboard.press("Enter")  # what is typed is saved with the note
    page.wait_for_url("**/publish/")
    expect(page.locator("#publish")).to_be_focused()
    by.keys("Enter")
    page.wait_for_url(f"**{BASE}")
    expect(page.locator(".messages")).to_contain_text("Published revision 3 at")
    model = PublicModel.objects.get(slug=SLUG)
    assert (model.published, model.revision) == (True, 3)
    assert model.bindings.get(supply__slug="osprey-pro").priority > 910_000
    assert by.steps <= 6


def test_g19_why_a_job_went_to_its_supply_takes_two_steps_and_why_not_another_three(
    visitor: Visit, world: World
) -> None:
    page = visitor().visit("/console/")
    by = hands(page)
    by.search(world.switched.public_id)
    page.wait_for_url(f"**/jobs/{world.switched.public_id}/")
    expect(page.locator("#answer")).to_contain_text("Delivered by kestrel-lite")
    by.press(f"a[href$='/{world.switched.public_id}/rounds/1/']")
    page.wait_for_url("**/rounds/1/")
    expect(page.locator("h1")).to_be_visible()
    assert by.steps <= 2
    by.keys("]")
    page.wait_for_url("**/rounds/2/")
    assert by.steps <= 3


def test_g19_why_nothing_moves_takes_two_steps_and_the_place_that_mends_it_three(
    visitor: Visit, operations: OperationsWorld
) -> None:
    page = visitor().visit("/console/jobs/")
    by = hands(page)
    by.keys("g", "d")
    page.wait_for_url("**/console/dispatch/")
    expect(page.locator("#verdict")).to_contain_text("Waiting: 6.")
    first = page.locator("#reasons tbody tr a.button").first
    reason, leads_to = first.get_attribute("id"), first.get_attribute("href")
    by.press(f"[id='{reason}']")
    page.wait_for_url(f"**{leads_to}")
    assert by.steps <= 3


def test_g19_an_uncertain_attempt_is_decided_in_six_steps(
    visitor: Visit, operations: OperationsWorld
) -> None:
    page = visitor().visit("/console/")
    by = hands(page)
    by.keys("g", "u")
    page.wait_for_url("**/console/uncertain/")
    by.press(f"[id='{operations.uncertain.public_id}-a']")
    page.wait_for_url(f"**/uncertain/{operations.uncertain.public_id}/")
    by.press("#take")
    expect(page.locator("#claim")).to_contain_text("li.m is on it until")
    by.press("#query")
    expect(page.locator("#answer")).to_be_focused()
    by.fill("#evidence-absent", "not in their console at 10:02")
    page.keyboard.press("Enter")
    page.wait_for_url("**/decide/**")
    by.press("#confirm")
    expect(page.locator("#verdict")).to_contain_text("Decided by li.m")
    assert Attempt.objects.get(pk=operations.uncertain.pk).state == "failed"
    assert by.steps <= 6


def test_g19_a_critical_alert_is_acknowledged_in_one_step(visitor: Visit, world: World) -> None:
    page = visitor().visit(f"/console/alerts/{world.alert.public_id}/")
    by = hands(page)
    page.keyboard.press("a")
    expect(page.locator(".acknowledge button")).to_be_focused()
    by.keys("Enter")
    expect(page.locator("#acknowledged")).to_be_focused()
    assert Alert.objects.get(pk=world.alert.pk).acknowledged_by == "li.m"
    assert by.steps <= 1


def test_g19_a_channel_goes_out_in_four_steps_and_comes_back_in_three(
    visitor: Visit, operations: OperationsWorld
) -> None:
    SupplyFactory(slug="swift-one", channel=ChannelFactory(slug="swift-main"))
    page = visitor().visit("/console/")
    by = hands(page)
    by.search("swift-main")
    page.wait_for_url("**/console/channels/swift-main/")
    by.keys("e")
    page.wait_for_url("**/maintenance/")
    by.fill("#reason", "key rotation")
    by.press("#start")
    page.wait_for_url("**/console/channels/swift-main/")
    expect(page.locator("#channel .maintenance")).to_contain_text("Maintenance by li.m until")
    assert Channel.objects.get(slug="swift-main").state == "draining"
    assert by.steps <= 4
    back = hands(page)
    back.keys("e")
    page.wait_for_url("**/maintenance/")
    back.press("#end")
    expect(page.locator("#channel .road [aria-current]")).to_contain_text("Probing")
    assert back.steps <= 3


def test_g19_a_model_that_loses_its_last_supply_is_ticked_by_keyboard(
    visitor: Visit, operations: OperationsWorld
) -> None:
    page = visitor().visit("/console/channels/kestrel-main/maintenance/")
    by = hands(page)
    by.fill("#reason", "key rotation")
    for number in range(page.locator('input[name="losses"]').count()):
        value = page.locator('input[name="losses"]').nth(number).get_attribute("value")
        by.press(f'input[name="losses"][value="{value}"]', "Space")
    by.press("#start")
    expect(page.locator("#channel .maintenance")).to_contain_text("Maintenance by li.m until")


def test_g19_a_price_from_next_monday_takes_six_steps(visitor: Visit, transactional_db: None) -> None:
    make_models_world()
    person = visitor("finance")
    page = person.visit("/console/")
    by = hands(page)
    by.search("osprey-pro")
    page.wait_for_url("**/console/supplies/osprey-pro/")
    by.press("#to-prices")
    page.wait_for_url("**/cost-rules/osprey-pro/")
    by.keys("e")
    page.wait_for_url("**/cost-rules/osprey-pro/new/")
    by.fill("#unit", "0.0410")
    by.keys("Control+Enter")  # the start is next Monday already
    page.wait_for_url("**/review/**")
    expect(page.locator("#schedule")).to_be_focused()
    by.keys("Enter")
    page.wait_for_url("**/cost-rules/osprey-pro/")
    expect(page.locator("#verdict")).to_contain_text("Version 2 is scheduled")
    version = CostRuleVersion.objects.get(rule__supply__slug="osprey-pro", number=2)
    assert version.document["per_second"] == "0.0410"
    assert by.steps <= 6


def test_g19_a_new_supply_is_added_tried_bound_and_published_in_fourteen_steps(
    visitor: Visit, engine: Engine
) -> None:
    person = visitor("admin")
    page = person.visit("/console/channels/ark-beijing/")
    by = hands(page)
    by.press("#to-new-supply")
    page.wait_for_url("**/supplies/new/**")
    what = {"#slug": "beijing-next", "#provider_model": "doubao-seedance-3-0", "#model_family": "seedance-3"}
    by.page_of(what)
    page.wait_for_url("**/can/")
    by.reach('input[name="modes"][value="text_to_video"]')
    page.keyboard.press("Space")
    can = {"#label": "2026-11", "#durations_s": "4-15", "#resolutions": "480p, 720p, 1080p"}
    by.page_of(can | {"#aspect_ratios": "16:9, 9:16, 1:1", "#max_images": "9"})
    page.wait_for_url("**/slots/")
    by.page_of({"#concurrency": "3"})
    page.wait_for_url("**/cost/")
    by.page_of({"#unit": "0.80"})
    page.wait_for_url("**/supplies/beijing-next/try/")
    by.page_of({"#prompt": "a boat"})
    expect(page.locator("#cost")).to_contain_text("It costs")
    by.press("#send")
    expect(page.locator("[data-trial='asked']")).to_be_visible()
    engine.drain()
    person.beat(5)
    expect(page.locator("[data-trial='accepted']")).to_be_visible()
    by.press("[id='bind-seedance-2.0-933']")
    page.wait_for_url("**/edit/**")
    by.choose("#add-supply", "beijing-next")
    by.press("#add-")
    expect(page.locator("[data-row='beijing-next@fallback']")).to_be_visible()
    by.keys("Control+Enter")
    page.wait_for_url("**/review/")
    by.fill("#note", "a second account's newer model")
    page.keyboard.press("Enter")
    page.wait_for_url("**/publish/")
    expect(page.locator("#publish")).to_be_focused()
    by.keys("Enter")
    expect(page.locator(".messages")).to_contain_text("Published revision")
    assert Supply.objects.get(slug="beijing-next").bindings.count() == 1
    assert by.steps <= 14
