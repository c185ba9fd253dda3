"""How people use the console: by keyboard, on a phone, without script."""

from playwright.sync_api import Page, expect

from dispatch.models import Job
from health.models import Alert
from tests.browser.conftest import Visit, World
from tests.factories import JobFactory

JOBS = "/console/jobs/"


def active_id(page: Page) -> str:
    return page.evaluate("document.activeElement.id")


def test_keys_go_to_pages_rows_and_rounds(visitor: Visit, world: World) -> None:
    page = visitor().visit("/console/")
    page.keyboard.type("gj")
    page.wait_for_url("**/console/jobs/")
    page.keyboard.press("j")
    first = active_id(page)
    page.keyboard.press("j")
    assert active_id(page) != first
    page.keyboard.press("k")
    assert active_id(page) == first
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/console/jobs/{first.removesuffix('-a')}/")


def test_keys_step_through_the_rounds(visitor: Visit, world: World) -> None:
    page = visitor().visit(f"{JOBS}{world.switched.public_id}/rounds/1/")
    page.keyboard.press("]")
    page.wait_for_url("**/rounds/2/")
    page.keyboard.press("[")
    page.wait_for_url("**/rounds/1/")


def test_g13_search_by_keyboard_opens_a_pasted_id(visitor: Visit, world: World) -> None:
    page = visitor().visit("/console/")
    page.keyboard.press("/")
    assert active_id(page) == "search"
    page.keyboard.insert_text(world.switched.public_id)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/console/jobs/{world.switched.public_id}/")


def test_g18_keys_are_silent_in_fields_while_composing_and_when_switched_off(
    visitor: Visit, world: World
) -> None:
    page = visitor().visit(JOBS)
    dialog = page.locator("#keys")
    page.focus("#search")
    page.keyboard.type("?p")
    assert page.input_value("#search") == "?p"
    page.focus("h1")
    event = "new KeyboardEvent('keydown', {key: '?', bubbles: true, isComposing: true})"
    page.evaluate(f"document.body.dispatchEvent({event})")
    expect(dialog).not_to_be_visible()
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    page.click("#keys-switch")
    page.keyboard.press("Escape")
    page.focus("h1")
    page.keyboard.press("?")
    expect(dialog).not_to_be_visible()


def test_g7_back_from_a_job_returns_to_the_row_that_was_opened(visitor: Visit, world: World) -> None:
    for _ in range(40):
        JobFactory(state="queued")
    page = visitor().visit(f"{JOBS}?state=queued&size=100")
    link = page.locator("#jobs a").nth(30)
    link.scroll_into_view_if_needed()
    opened, scrolled = link.get_attribute("id"), page.evaluate("scrollY")
    link.click()
    page.wait_for_url("**/console/jobs/job_*/")
    page.go_back()
    page.wait_for_url("**/console/jobs/?state=queued&size=100")
    expect(page.locator(f"[id='{opened}']")).to_be_focused()
    assert abs(page.evaluate("scrollY") - scrolled) < 50


def test_copy_puts_the_whole_id_on_the_clipboard(visitor: Visit, world: World) -> None:
    person = visitor()
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = person.visit(f"{JOBS}{world.switched.public_id}/")
    page.locator(".heading h1 + [data-copy]").click()
    expect(page.locator("#announce")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == world.switched.public_id


def test_the_content_is_shown_on_request_and_a_beat_does_not_hide_it(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(f"{JOBS}{world.running.public_id}/")
    prompt = world.running.request["prompt"]
    expect(page.locator("body")).not_to_contain_text(prompt)
    page.click("text=Show content")
    expect(page.locator("#content")).to_contain_text(prompt)
    person.beat_and_wait(world.running.public_id, seconds=5)
    expect(page.locator("#content")).to_contain_text(prompt)


def test_a8_on_a_phone_the_button_is_in_the_first_view_and_two_taps_do_it(
    visitor: Visit, world: World
) -> None:
    for width in (390, 320):
        page = visitor(width=width, name=f"phone-{width}").visit(f"/console/alerts/{world.alert.public_id}/")
        box = page.locator(".acknowledge button").bounding_box()
        assert box is not None
        assert page.viewport_size is not None
        assert box["height"] >= 44
        assert box["y"] + box["height"] <= page.viewport_size["height"]
    page.click(".acknowledge button")
    expect(page.locator("#acknowledged")).to_contain_text("Acknowledged by phone-320 at")
    assert Alert.objects.get(pk=world.alert.pk).acknowledged_by == "phone-320"


def test_a2_acknowledging_from_the_strip_keeps_the_page_and_its_filters(visitor: Visit, world: World) -> None:
    here = f"{JOBS}?state=failed&state=running"
    page = visitor().visit(here)
    page.locator("#strips").get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".messages")).to_contain_text("Acknowledged by li.m at")
    assert page.url.endswith(here)
    assert page.locator(".strip").count() == 0


def test_p5_without_script_lists_filters_pages_and_acknowledging_work(visitor: Visit, world: World) -> None:
    for _ in range(60):
        JobFactory(state="queued")
    page = visitor(script=False).visit(JOBS)
    page.click("summary:has-text('State')")
    page.check("input[value=queued]")
    page.click("text=Apply")
    page.wait_for_url("**state=queued**")
    expect(page.locator("#jobs tr")).to_have_count(50)
    page.click("text=Older")
    expect(page.locator("#jobs tr")).to_have_count(Job.objects.filter(state="queued").count() - 50)
    page.goto(page.url.split("/console/")[0] + f"/console/alerts/{world.alert.public_id}/")
    page.fill("#note", "without script")
    page.locator(".acknowledge button").click()
    expect(page.locator("#acknowledged")).to_contain_text("without script")
    assert page.locator("#pause").is_hidden()


def test_the_theme_and_the_language_are_chosen_from_the_menu(visitor: Visit, world: World) -> None:
    page = visitor().visit(f"{JOBS}?state=running")
    page.click("#you-button")
    page.click("#you >> text=Dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.click("#you-button")
    page.click("#you >> text=简体中文")
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    assert page.url.endswith("?state=running")


def test_i5_another_zone_of_the_browser_changes_no_time(visitor: Visit, world: World) -> None:
    page = visitor().visit(f"{JOBS}{world.switched.public_id}/")
    for shown in page.locator("main time").all()[:8]:
        utc, text = shown.get_attribute("datetime") or "", shown.inner_text()
        assert utc.endswith("Z")
        assert utc[11:19] in text
