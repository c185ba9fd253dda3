"""Live regions: values change in place, rows never move, and nothing happens under somebody's hands."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from dispatch.models import Attempt, Job
from tests.browser.conftest import Visit, World
from tests.factories import AlertFactory, JobFactory

JOBS = "/console/jobs/"
ROWS = "Array.from(document.querySelectorAll('#jobs [data-row]'), row => row.dataset.row)"


def active_id(page: Page) -> str:
    return page.evaluate("document.activeElement.id")


def test_l1_focus_stays_and_values_change(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(JOBS)
    link = f"{world.running.public_id}-a"
    page.focus(f"[id='{link}']")
    for cost in (1_000_000, 2_000_000, 3_000_000):
        Job.objects.filter(pk=world.running.pk).update(provider_cost_micros=cost)
        person.beat_and_wait(JOBS)
    assert active_id(page) == link
    assert "$3.00" in page.locator(f"[id='{world.running.public_id}']").inner_text()


def test_l2_what_is_open_stays_open(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(f"{JOBS}{world.running.public_id}/")
    page.click("#attempts-table summary")
    page.click("#round-1-candidates summary")  # was open: the reader closed it
    for _ in range(3):
        person.beat_and_wait(world.running.public_id, seconds=5)
    assert page.locator("#attempts-table").get_attribute("open") is not None
    assert page.locator("#round-1-candidates").get_attribute("open") is None


def test_l4_new_jobs_are_announced_and_move_nothing(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(JOBS)
    before = page.evaluate(ROWS)
    for _ in range(3):
        JobFactory(created_at=timezone.now())
    person.beat_and_wait(JOBS)
    assert page.evaluate(ROWS) == before
    page.click("text=3 new jobs. Show")
    expect(page.locator("#jobs [data-row]")).to_have_count(len(before) + 3)


def test_l5_a_row_that_stops_matching_stays_and_says_so(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(f"{JOBS}?state=running")
    Job.objects.filter(pk=world.running.pk).update(state="fetching_output")
    person.beat_and_wait(JOBS)
    row = page.locator(f"[id='{world.running.public_id}']")
    assert "no longer matches" in row.inner_text()
    assert "Fetching output" in row.inner_text()


def test_l7_nothing_is_asked_while_somebody_is_in_the_middle_of_something(
    visitor: Visit, world: World
) -> None:
    person = visitor()
    person.page.clock.install()
    page = person.visit(f"/console/alerts/{world.alert.public_id}/")
    # From here on time passes only where it is told to: what is owed is not paid in between, unseen.
    page.clock.pause_at(timezone.now() + timedelta(minutes=1))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    def asks_within(seconds: int) -> bool:
        """Whatever was asked is answered afterwards: an answer that comes later may ask again."""
        asked.clear()
        page.clock.run_for(seconds * 1000)
        expect(page.locator(".htmx-request")).to_have_count(0)
        return bool(asked)

    assert asks_within(30)
    page.fill("#note", "half a sentence")
    assert not asks_within(60)
    page.fill("#note", "")
    page.evaluate("delete document.querySelector('form[data-guard]').dataset.dirty")
    assert asks_within(1)
    page.click("h1")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    assert not asks_within(60)
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).not_to_be_visible()
    assert asks_within(1)
    page.keyboard.press("p")
    assert page.locator("#pause").get_attribute("aria-pressed") == "true"
    assert not asks_within(60)
    page.keyboard.press("p")
    assert asks_within(1)


@pytest.mark.parametrize("broken", ["error", "offline"])
def test_l8_l9_two_missed_beats_are_stale_and_the_data_stays(
    visitor: Visit, world: World, broken: str
) -> None:
    person = visitor()
    page = person.visit(JOBS)
    before = page.locator("#jobs").inner_text()

    def fail(route: Route) -> None:
        if broken == "offline":
            route.abort()
        else:
            route.fulfill(status=500, body="Server Error (500)")

    page.route("**/console/**", fail)
    for _ in range(2):
        person.beat()
        expect(page.locator(".htmx-request")).to_have_count(0)
    expect(page.locator("html")).to_have_attribute("data-stale", "")
    expect(page.locator("#asof")).to_contain_text("Stale: last data")
    expect(page.locator("#announce")).to_contain_text("Stale")
    assert page.locator("#jobs").inner_text() == before
    page.unroute("**/console/**")
    person.beat_and_wait(JOBS)
    expect(page.locator("html")).not_to_have_attribute("data-stale", "")
    expect(page.locator("#asof")).to_contain_text("Data as of")
    expect(page.locator("#announce")).to_have_text("Back up to date.")


def test_l10_signed_out_the_page_says_so_and_keeps_what_was_typed(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(f"/console/alerts/{world.alert.public_id}/")
    page.fill("#note", "half a sentence")
    here = page.url
    Session.objects.all().delete()
    person.beat_and_wait("/console/")
    expect(page.locator("#signed-out")).to_be_visible()
    assert page.url == here
    assert page.input_value("#note") == "half a sentence"
    assert page.locator("input[type=password]").count() == 0


def test_l12_when_nothing_changed_the_page_is_not_touched(visitor: Visit, world: World) -> None:
    Job.objects.filter(finished_at=None).update(state="cancelled", finished_at=timezone.now())
    person = visitor()
    page = person.visit(JOBS)
    person.beat_and_wait(JOBS)
    page.evaluate(
        """() => { window.changes = 0;
          new MutationObserver(list => { window.changes += list.length; })
            .observe(document.querySelector('#jobs'),
                     {subtree: true, childList: true, characterData: true}) }"""
    )
    with page.expect_response(lambda response: response.url.endswith(JOBS)) as answer:
        person.beat()
    assert answer.value.status == 304
    expect(page.locator(".htmx-request")).to_have_count(0)
    assert page.evaluate("window.changes") == 0


def test_l13_a_job_that_ends_sends_no_more_requests(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(f"{JOBS}{world.running.public_id}/")
    now = timezone.now()
    attempt = Attempt.objects.get(job=world.running)
    Attempt.objects.filter(pk=attempt.pk).update(state="succeeded", finished_at=now, next_look_at=None)
    Job.objects.filter(pk=world.running.pk).update(
        state="succeeded", adopted_attempt=attempt, finished_at=now
    )
    person.beat_and_wait(world.running.public_id, seconds=5)
    expect(page.locator("#answer")).to_contain_text("Delivered by kestrel-hd")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(3):
        person.beat(5)
    person.beat_and_wait("/console/strips/")
    assert not [url for url in asked if world.running.public_id in url], "the page itself goes on"


def test_a1_l14_a_new_critical_alert_is_announced_once(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(JOBS)
    assert page.locator("#announce-alert").inner_text() == ""
    alert = AlertFactory(code="no_dispatcher", subject="installation")
    person.beat_and_wait("/console/strips/")
    expect(page.locator("#announce-alert")).to_contain_text("No dispatcher is running")
    assert page.locator(f"#strip-{alert.public_id}").is_visible()
    assert page.locator("#alarm-count-link").inner_text().startswith("2")
    page.evaluate("document.querySelector('#announce-alert').textContent = ''")
    for _ in range(3):
        person.beat_and_wait("/console/strips/")
    assert page.locator("#announce-alert").inner_text() == ""


def test_g21_the_time_of_the_data_is_that_of_the_last_beat(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(JOBS)
    page.evaluate("document.querySelector('main').dataset.asof = 'before'")
    Job.objects.filter(pk=world.running.pk).update(created_at=timezone.now() - timedelta(minutes=9))
    person.beat_and_wait(JOBS)
    both = "[document.querySelector('main').dataset.asof, document.querySelector('#asof').textContent]"
    as_of, told = page.evaluate(both)
    assert as_of[11:19] in told
