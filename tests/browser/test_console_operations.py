"""The pages of operations in a browser: accessible, and usable by keyboard and without script."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from dispatch.models import Attempt, CapacityLease
from tests.browser.conftest import Visit
from tests.operations_world import OperationsWorld, make_operations_world


@pytest.fixture
def operations(transactional_db: None) -> OperationsWorld:
    return make_operations_world()


def test_l1_l2_beats_keep_focus_open_details_and_change_numbers_in_place(
    visitor: Visit, operations: OperationsWorld
) -> None:
    person = visitor()
    page = person.visit("/console/capacity/")
    page.focus("#capacity-kestrel-hd-a")
    bar = page.locator("#capacity-row-kestrel-hd .slot-bar")
    assert "3 in use + 1 leased" in (bar.get_attribute("aria-label") or "")
    CapacityLease.objects.filter(attempt__state="ready").update(released_at=timezone.now(), state="released")
    person.beat_and_wait("/capacity/", 5)
    assert "3 in use + 0 leased" in (bar.get_attribute("aria-label") or "")
    assert page.evaluate("document.activeElement.id") == "capacity-kestrel-hd-a"
    page = person.visit("/console/dispatch/")
    page.click("#all-reasons summary")
    person.beat_and_wait("/dispatch/", 5)
    assert page.locator("#all-reasons").get_attribute("open") is not None


def test_p5_without_script_an_attempt_is_taken_asked_about_and_decided(
    visitor: Visit, operations: OperationsWorld
) -> None:
    page = visitor(script=False).visit("/console/uncertain/")
    page.click(f"#{operations.uncertain.public_id}-a")
    page.click("#take")
    expect(page.locator("#claim")).to_contain_text("li.m is on it until")
    page.click("#query")
    expect(page.locator("#answer")).to_contain_text("It does not tell whether the provider has it.")
    page.click("#review-absent")
    expect(page.locator("#fault")).to_contain_text("Say what this decision rests on.")
    page.fill("#evidence-absent", "not in their console at 10:02")
    with page.expect_navigation():
        page.click("#review-absent")
    expect(page.locator(".effect")).to_contain_text("is freed at once")
    page.click("#confirm")
    expect(page.locator("#verdict")).to_contain_text("Decided by li.m")
    assert Attempt.objects.get(pk=operations.uncertain.pk).state == "failed"


def test_e2_e12_a_beat_leaves_the_confirm_step_of_the_desk_and_what_was_typed(
    visitor: Visit, operations: OperationsWorld
) -> None:
    person = visitor()
    page = person.visit(f"/console/uncertain/{operations.uncertain.public_id}/")
    page.fill("#evidence-absent", "not in their")
    for _ in range(3):
        person.beat_and_wait("/uncertain/")
    assert page.input_value("#evidence-absent") == "not in their"
    page.click("#review-absent")
    expect(page.locator("#confirm")).to_be_visible()
    for _ in range(3):
        person.beat(10)
    page.click("#confirm")
    expect(page.locator("#verdict")).to_contain_text("Decided by li.m")
