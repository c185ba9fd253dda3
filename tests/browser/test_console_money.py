"""The pages of money, people and help in a browser: accessible, and usable by keyboard and without script."""

import pytest
from playwright.sync_api import expect

from catalog.models import AuditEntry
from tests.browser.conftest import Visit
from tests.models_world import make_models_world
from tests.money_world import MoneyWorld, make_money_world

REFUSALS = "/console/refusals/"


@pytest.fixture
def money(transactional_db: None) -> MoneyWorld:
    make_models_world()
    return make_money_world()


def test_p5_lifting_scheduling_and_crediting_need_no_script(visitor: Visit, money: MoneyWorld) -> None:
    page = visitor("admin", script=False).visit(REFUSALS)
    page.click(f"[id='{money.frozen.public_id}-a']")
    page.click("text=Show content")
    expect(page.locator("#content")).to_contain_text("That you looked is recorded")
    page.fill("#why", "the provider corrected its filter")
    page.click("text=Lift the refusal")
    expect(page.locator("#verdict")).to_contain_text("Ended at")
    page.goto(page.url.partition("/console/")[0] + f"/console/customers/{money.customer.public_id}/")
    page.click("#deposit")
    page.fill("#amount", "12.50")
    page.fill("#note", "invoice 8")
    page.click("text=Review")
    page.click("#confirm-deposit")
    expect(page.locator(".figure").first).to_contain_text("$261.90")
    page.click("#ledger")
    page.click("#show-totals")
    expect(page.locator(".figure").first).to_contain_text("$261.90")
    page.goto(page.url.partition("/console/")[0] + "/console/cost-rules/osprey-pro/new/")
    page.fill("#unit", "0.05")
    page.click("#review")
    page.click("#schedule")
    expect(page.locator("#verdict")).to_contain_text("Version 1 applies until then.")
    assert AuditEntry.objects.filter(actor="li.m").count() == 4 + 1  # with the one of the world


def test_l1_l5_a_beat_changes_a_refusal_in_place_and_keeps_the_focus(
    visitor: Visit, money: MoneyWorld
) -> None:
    person = visitor()
    page = person.visit(REFUSALS)
    link = f"{money.frozen.public_id}-a"
    page.focus(f"[id='{link}']")
    money.cooling.frozen_at = money.cooling.refused_at
    money.cooling.refusals = 4
    money.cooling.save(update_fields=["frozen_at", "refusals"])
    order = page.eval_on_selector_all("[data-row]", "rows => rows.map(row => row.dataset.row)")
    person.beat_and_wait(REFUSALS)
    assert page.evaluate("document.activeElement.id") == link
    assert page.eval_on_selector_all("[data-row]", "rows => rows.map(row => row.dataset.row)") == order
    expect(page.locator("[data-state=frozen]")).to_have_count(2)
    assert person.complaints == []
