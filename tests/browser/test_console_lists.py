"""Lists in a browser: back to the row one came from, ticked rows, all that match; and a new supply."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from dispatch.models import Job, ProviderJob
from health.models import Alert, SupplyHealth
from tests.browser import looking
from tests.browser.conftest import Visit
from tests.factories import AlertFactory, ApiKeyFactory, JobFactory, PublicModelFactory, succeeded_job
from tests.operations_world import make_operations_world

FILTERED = "/console/jobs/?state=queued&state=running&modality=video"


@pytest.fixture
def many_jobs(transactional_db: None) -> list[Job]:
    """More than fit a screen, newest first."""
    key, model, now = ApiKeyFactory(), PublicModelFactory(), timezone.now()
    jobs = [
        JobFactory(api_key=key, public_model=model, created_at=now - timedelta(minutes=number))
        for number in range(60)
    ]
    JobFactory(api_key=key, public_model=model, state="failed")
    return jobs


def warnings(count: int) -> list[Alert]:
    ago = timezone.now() - timedelta(minutes=9)
    usual = {"code": "stuck_attempt", "severity": "warning", "opened_at": ago, "last_seen_at": ago}
    return [AlertFactory(**usual) for _ in range(count)]


def rows(page: Page) -> list[str]:
    found: list[str] = page.eval_on_selector_all("[data-row]", "all => all.map(each => each.dataset.row)")
    return found


@pytest.mark.parametrize("width", [1440, 390])
def test_g7_back_from_a_job_is_the_same_address_rows_focus_and_height(
    visitor: Visit, many_jobs: list[Job], width: int
) -> None:
    page = visitor(width=width).visit(FILTERED)
    job = many_jobs[40].public_id
    page.locator(f"#{job}-a").scroll_into_view_if_needed()
    before, height = rows(page), page.evaluate("scrollY")
    assert height > 100
    page.click(f"#{job}-a")
    page.wait_for_url(f"**/jobs/{job}/")
    page.go_back()
    expect(page.locator(f"#{job}-a")).to_be_focused()
    assert page.url.endswith(FILTERED)
    assert rows(page) == before
    assert abs(page.evaluate("scrollY") - height) <= 50


def test_g10_newer_jobs_neither_repeat_a_row_of_the_first_page_nor_push_one_out(
    visitor: Visit, many_jobs: list[Job]
) -> None:
    page = visitor().visit(FILTERED)
    first = rows(page)
    for _ in range(5):
        JobFactory(
            api_key=many_jobs[0].api_key, public_model=many_jobs[0].public_model, created_at=timezone.now()
        )
    with page.expect_navigation():
        page.click('a[rel="next"]')
    assert first + rows(page) == [job.public_id for job in many_jobs]


def test_g6_g12_back_twice_and_forward_once_show_what_the_address_says(
    visitor: Visit, many_jobs: list[Job]
) -> None:
    page = visitor().visit("/console/jobs/")
    shown: dict[str, tuple[str, list[str]]] = {}

    def remember() -> None:
        shown[page.url] = (page.locator("#f-since").input_value(), rows(page))

    for since, state in (("1h", "queued"), ("24h", "failed"), ("7d", "succeeded")):
        page.select_option("#f-since", since)
        page.locator(".filters .states summary").first.click()
        page.check(f'input[name="state"][value="{state}"]')
        with page.expect_navigation():
            page.locator(".filters button").click()
        remember()
    assert len(shown) == 3
    for move in (page.go_back, page.go_back, page.go_forward):
        move()
        since, listed = shown[page.url]
        assert re.search(r"since=(\w+)", page.url)[1] == since  # type: ignore[index]
        assert (page.locator("#f-since").input_value(), rows(page)) == (since, listed)
        ticked = page.eval_on_selector_all("[name=state]:checked", "all => all.map(each => each.value)")
        assert sorted(ticked) == sorted(re.findall(r"state=(\w+)", page.url))


def test_g13_any_id_that_is_pasted_opens_its_page_in_one_step(visitor: Visit, transactional_db: None) -> None:
    world = make_operations_world()
    job = succeeded_job()
    task = ProviderJob.objects.get(attempt__job=job).provider_job_id
    page = visitor().visit("/console/")
    opens = {
        job.public_id: f"/jobs/{job.public_id}/",
        world.uncertain.public_id: f"/jobs/{world.uncertain.job.public_id}/#{world.uncertain.public_id}",
        task: f"/jobs/{job.public_id}/#{job.adopted_attempt.public_id}",  # type: ignore[union-attr]
        world.kestrel.channel.public_id: "/channels/kestrel-main/",
        world.kestrel.public_id: "/supplies/kestrel-hd/",
        "kestrel-main": "/channels/kestrel-main/",
    }
    for pasted, address in opens.items():
        page.keyboard.press("/")
        page.keyboard.insert_text(pasted)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/console{address}")
    page.fill("#search", "job_unknown0")
    page.press("#search", "Enter")
    expect(page.locator("main h2").first).to_contain_text("job_unknown0")
    assert "job_unknown0" in [each.input_value() for each in page.locator('input[name="q"]').all()]


@pytest.mark.parametrize("script", [True, False])
def test_a7_g14_three_ticked_warnings_are_acknowledged_and_stay_ticked(
    visitor: Visit, transactional_db: None, script: bool
) -> None:
    alerts, critical = warnings(5), AlertFactory()
    person = visitor(script=script)
    page = person.visit("/console/alerts/?code=stuck_attempt&code=submission_abandoned")
    expect(page.locator(f"#{critical.public_id}-tick")).to_have_count(0)
    if script:
        page.focus(f"#{alerts[0].public_id}-a")
        page.keyboard.press("x")
    else:
        page.check(f"#{alerts[0].public_id}-tick")
    for alert in alerts[1:3]:
        page.check(f"#{alert.public_id}-tick")
    if script:
        person.beat_and_wait("/alerts/")
    with page.expect_navigation():
        page.click("#acknowledge-ticked")
    expect(page.locator(".message")).to_contain_text("3 alerts are acknowledged.")
    ticked = page.eval_on_selector_all("[name=ticked]:checked", "all => all.map(each => each.value)")
    assert sorted(ticked) == sorted(alert.public_id for alert in alerts[:3])
    assert "code=stuck_attempt&code=submission_abandoned" in page.url
    assert Alert.objects.filter(acknowledged_by="li.m").count() == 3


def test_g15_the_confirming_page_says_the_same_after_reload_back_and_forward(
    visitor: Visit, transactional_db: None
) -> None:
    warnings(4)
    page = visitor().visit("/console/alerts/?severity=warning")
    with page.expect_navigation():
        page.click("#acknowledge-matching")
    told = (page.locator("#verdict").inner_text(), page.locator("#filter").inner_text())
    assert "4 alerts" in told[0]
    assert "Warning" in told[1]
    now = timezone.now()
    AlertFactory(code="stuck_attempt", severity="warning", opened_at=now, last_seen_at=now)
    for move in (page.reload, page.go_back, page.go_forward):
        move()
        if "/matching/" in page.url:
            assert (page.locator("#verdict").inner_text(), page.locator("#filter").inner_text()) == told
    Alert.objects.filter(pk=Alert.objects.earliest("pk").pk).update(
        resolved_at=timezone.now(), resolved_why="it ended"
    )
    page.click("#confirm")
    expect(page.locator("#summary")).to_contain_text("Nothing was changed")
    expect(page.locator("#summary")).to_be_focused()
    assert page.title().replace("[TEST] ", "").startswith("Error:")
    expect(page.locator("#verdict")).to_contain_text("3 alerts")
    assert not Alert.objects.exclude(acknowledged_at=None).exists()
    page.click("#confirm")
    expect(page.locator(".message")).to_contain_text("3 alerts are acknowledged.")


def test_g9_p5_a_job_is_cancelled_from_a_filtered_list_and_a_view_kept_without_script(
    visitor: Visit, many_jobs: list[Job]
) -> None:
    page = visitor(script=False).visit(FILTERED)
    page.click("#views summary")
    page.fill("#view-name", "Under way")
    page.click("#save-view")
    expect(page.locator("#views summary")).to_have_text("Under way")
    assert page.url.endswith(FILTERED)
    job = many_jobs[3]
    page.click(f"#{job.public_id}-cancel")
    page.fill("#reason", "asked for by phone")
    with page.expect_navigation():
        page.click("#cancel")
    assert page.url.endswith(FILTERED)
    assert job.public_id not in rows(page)
    job.refresh_from_db()
    assert job.state == "cancelled"


def test_ticks_are_counted_and_a_menu_closes_on_escape_and_on_a_press_elsewhere(
    visitor: Visit, many_jobs: list[Job]
) -> None:
    page = visitor().visit(FILTERED)
    export = page.locator("#export-ticked")
    expect(export).to_have_text("Export the ticked ones")
    page.check(f"#{many_jobs[0].public_id}-tick")
    expect(export).to_have_text("Export the ticked ones (1)")
    page.check("#tick-all")
    expect(export).to_have_text("Export the ticked ones (50)")
    page.uncheck("#tick-all")
    expect(export).to_have_text("Export the ticked ones")
    menu = page.locator("#views")
    page.click("#views summary")
    page.focus("#view-name")
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(page.locator("#views summary")).to_be_focused()
    page.click("#views summary")
    page.click("#view-name")
    expect(menu).to_have_attribute("open", "")
    page.click("#list-heading")
    expect(menu).not_to_have_attribute("open", "")


@pytest.mark.parametrize(("language", "script"), [("en", False), ("zh-hans", True)])
def test_p5_a_supply_is_added_in_four_steps_and_tried_and_each_page_is_accessible(
    visitor: Visit, transactional_db: None, language: str, script: bool
) -> None:
    make_operations_world()
    person = visitor("admin", language=language, script=script)
    page = person.visit("/console/channels/kestrel-main/")
    page.click("#to-new-supply")
    wrong: dict[str, list[str]] = {}

    def looked_at(name: str) -> None:
        if not script:
            return
        looking.prepare(page)
        wrong[name] = list(looking.shape(page))
        for width, theme in ((1440, "dark"), (390, "light"), (320, "dark")):
            looking.dress(page, width, theme)
            page.evaluate("scrollTo(0, 0)")
            wrong[name] += looking.axe(page)
        looking.dress(page, 1440)

    def go_on() -> None:
        """The next page has such a button too."""
        with page.expect_navigation():
            page.click("#continue")

    page.fill("#slug", "kestrel next")
    go_on()
    looked_at("what, with faults")
    assert page.input_value("#slug") == "kestrel next"
    assert page.input_value("#channel") == "kestrel-main"
    page.fill("#slug", "kestrel-next")
    page.fill("#provider_model", "kestrel-3")
    page.fill("#model_family", "kestrel")
    go_on()
    looked_at("can")
    can = page.url
    person.visit("/console/supplies/new/")
    page.click('a[id$="-discard"]')
    looked_at("discard")
    page.click("#keep-editing")
    assert page.input_value("#slug") == "kestrel-next"
    page.goto(can)
    page.check('input[name="modes"][value="text_to_video"]')
    for name, text in (("durations_s", "5, 10"), ("resolutions", "720p"), ("aspect_ratios", "16:9")):
        page.fill(f"#{name}", text)
    go_on()
    looked_at("slots")
    go_on()
    looked_at("cost")
    page.fill("#unit", "0.05")
    page.click("#another-bracket")
    expect(page.locator("#bracket-2-min")).to_have_count(1)
    assert page.input_value("#unit") == "0.05"
    page.press("#unit", "Enter")
    page.wait_for_url("**/supplies/kestrel-next/try/")
    expect(page.locator('#need-price[data-done="yes"]')).to_have_count(1)
    page.click("#price-it")
    expect(page.locator("#cost")).to_contain_text("0.25")
    looked_at("try")
    page.click("#send")
    expect(page.locator('[data-trial="asked"]')).to_have_count(1)
    assert not {name: found for name, found in wrong.items() if found}
    assert [each for each in person.complaints if "422" not in each] == []


def test_a_circuit_is_probed_by_keyboard_alone(visitor: Visit, transactional_db: None) -> None:
    world = make_operations_world()
    now = timezone.now()
    SupplyHealth.objects.update_or_create(
        pk=world.kestrel.pk,
        defaults={"state": "circuit_open", "cooldown_until": now + timedelta(minutes=4), "openings": 1},
    )
    page = visitor().visit("/console/channels/kestrel-main/")
    page.focus("#to-probe")
    page.keyboard.press("Enter")
    page.wait_for_url("**/probe/")
    page.focus("#reason")
    page.keyboard.type("the provider says so")
    page.focus("#probe")
    page.keyboard.press("Enter")
    # The key of this world can't be opened: no customer's job is spent on it.
    expect(page.locator("#faults")).to_contain_text("The account check failed")
    assert page.input_value("#reason") == "the provider says so"
