"""What beats and failures leave in people's hands: what they type, where they are, and what they pressed."""

import pytest
from django.db import connection
from playwright.sync_api import expect

from dispatch.models import Job
from health.models import Alert
from tests.browser.conftest import Visit, World

JOBS = "/console/jobs/"


def test_l3_what_is_typed_into_a_filter_stays_with_its_caret(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(JOBS)
    page.focus("#search")
    page.keyboard.type("abc")
    page.keyboard.press("ArrowLeft")
    for cost in (1_000_000, 2_000_000):
        Job.objects.filter(pk=world.running.pk).update(provider_cost_micros=cost)
        person.beat_and_wait(JOBS)
    told = "() => { const it = document.activeElement; return [it.id, it.value, it.selectionStart]; }"
    assert page.evaluate(told) == ["search", "abc", 2]
    page.focus("h1")
    page.select_option("#f-modality", "video")
    for cost in (3_000_000, 4_000_000):
        Job.objects.filter(pk=world.running.pk).update(provider_cost_micros=cost)
        person.beat_and_wait(JOBS)
    assert (page.input_value("#search"), page.input_value("#f-modality")) == ("abc", "video")


def test_l6_focus_stays_in_the_list_when_its_row_is_gone(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit(JOBS)
    gone = Job.objects.filter(state="queued", attempts=None).first()
    assert gone is not None
    page.focus(f"[id='{gone.public_id}-a']")
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # jobs are never deleted by the product
        cursor.execute("DELETE FROM dispatch_job WHERE id = %s", [gone.pk])
        cursor.execute("SET session_replication_role = origin")
    person.beat_and_wait(JOBS)
    assert page.locator(f"[id='{gone.public_id}']").count() == 0
    assert page.evaluate("document.activeElement.closest('#jobs') !== null")


def test_l15_twenty_beats_leave_no_listener_and_no_node_behind(visitor: Visit, world: World) -> None:
    person = visitor()
    page = person.visit("/console/")
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable")

    def counted() -> tuple[float, float]:
        tools.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
        return metrics["JSEventListeners"], metrics["Nodes"]

    def beats(number: int) -> None:
        for count in range(number):
            Job.objects.filter(pk=world.running.pk).update(provider_cost_micros=1_000_000 * count)
            person.beat(10)
            person.beat(60)
            expect(page.locator(".htmx-request")).to_have_count(0)

    beats(2)
    before = counted()
    beats(20)
    after = counted()
    assert all(now <= then * 1.05 for then, now in zip(before, after, strict=True)), (before, after)


@pytest.mark.parametrize("broken", ["error", "offline"])
def test_a6_an_acknowledgement_that_fails_says_so_and_keeps_the_button(
    visitor: Visit, world: World, broken: str
) -> None:
    page = visitor().visit(f"/console/alerts/{world.alert.public_id}/")
    page.route(
        "**/acknowledge/", lambda route: route.abort() if broken == "offline" else route.fulfill(status=500)
    )
    page.fill("#note", "on it")
    button = page.locator(".acknowledge button")
    button.click()
    expect(page.locator("#announce-alert")).to_have_text("Not recorded. Try again.")
    expect(page.locator(".acknowledge .alarm")).to_have_text("Not recorded. Try again.")
    expect(button).to_be_enabled()
    expect(button).to_have_text("Acknowledge")
    assert page.input_value("#note") == "on it"
    assert Alert.objects.get(pk=world.alert.pk).acknowledged_at is None
    page.unroute("**/acknowledge/")
    button.click()
    expect(page.locator("#acknowledged")).to_be_focused()
    assert Alert.objects.get(pk=world.alert.pk).note == "on it"
