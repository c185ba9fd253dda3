"""What one acts on is in view on a small screen, and a phone says and does what a wide screen does."""

import os

import pytest
from django.utils import timezone
from playwright.sync_api import Page

from dispatch.models import Job
from tests.browser.conftest import Visit, World
from tests.factories import AlertFactory, AttemptFactory, JobFactory

_RIGHT = "all => Math.max(...all.map(each => each.getBoundingClientRect().right))"


@pytest.fixture
def jobs(transactional_db: None) -> list[Job]:
    made = []
    for state in ("queued", "running", "running"):
        job = JobFactory(state=state, provider_cost_micros=233_100)
        AttemptFactory(job=job)
        made.append(job)
    return made


def looked_at(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize("width", [1280, 1024])
def test_the_column_that_is_acted_on_is_in_view(
    visitor: Visit, world: World, jobs: list[Job], width: int
) -> None:
    person = visitor(width=width)
    model = world.models.model.slug
    for address, cell in (
        ("jobs/", "td.act a"),
        ("models/", "tbody td:last-child"),
        ("supplies/", "tbody td:last-child"),
        (f"models/{model}/", ".bindings tbody td:last-child"),
        (f"models/{model}/edit/", "td.act button"),
    ):
        page = person.visit(f"/console/{address}")
        looked_at(page, f"{address.replace('/', '-')}{width}")
        if width == 1280 or ".act" in cell:
            assert page.eval_on_selector_all(cell, _RIGHT) <= width, address


def test_a_phone_names_what_a_strip_is_about_and_ticks_jobs(visitor: Visit, jobs: list[Job]) -> None:
    now = timezone.now()
    for slug in ("heron-hd", "kestrel-hd"):
        AlertFactory(subject=f"supply:{slug}", opened_at=now, last_seen_at=now)
    page = visitor(width=390).visit("/console/jobs/")
    looked_at(page, "jobs-390")
    for slug in ("heron-hd", "kestrel-hd"):
        assert page.locator("#strips").get_by_text(slug).is_visible()
    job = jobs[2]
    page.check(f"#{job.public_id}-tick")
    assert page.locator("#export-ticked").is_visible()
    row = page.locator(f"[id='{job.public_id}']")
    assert row.get_by_text(job.attempts.get().supply.slug).is_visible()
    assert "0.23" in row.inner_text()


@pytest.mark.parametrize("script", [True, False])
def test_a_phone_folds_the_filters_of_a_list_until_a_key_opens_them(
    visitor: Visit, jobs: list[Job], script: bool
) -> None:
    page = visitor(width=390, script=script).visit("/console/jobs/?modality=video")
    assert page.inner_text("#filters > summary") == "Filters (1)"
    assert not page.is_visible("#f-model")
    page.focus("#filters > summary")
    page.keyboard.press("Enter")
    assert page.is_visible("#f-model")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.reload()
    assert page.is_visible("#f-model")
    assert not page.is_visible("#filters > summary")
    page.focus("#f-model")
    page.keyboard.press("Shift+Tab")
    assert page.locator(".filters .states > summary:focus").count() == 1, "what stands is reached by keys"


_SIDEWAYS = "all => all.map(each => each.scrollWidth - each.clientWidth)"
# Cells of the rows that are not seen, not inside of their region, or not under the heading of their column.
_OUT_OF_PLACE = """table => {
  const right = table.parentElement.getBoundingClientRect().right + 1;
  const heads = Array.from(table.tHead.rows[0].cells, head => head.getBoundingClientRect());
  return Array.from(table.tBodies[0].rows).flatMap(row => Array.from(row.cells).filter((cell, column) => {
    const box = cell.getBoundingClientRect();
    return !cell.checkVisibility() || box.right > right || Math.abs(box.left - heads[column].left) > 1;
  })).map(cell => cell.outerHTML.slice(0, 80));
}"""


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("width", [768, 1024])
def test_v9_short_of_room_a_wide_list_has_a_second_line_and_hides_nothing(
    visitor: Visit, world: World, jobs: list[Job], width: int, language: str
) -> None:
    """The row "More" of the design, also without script."""
    person = visitor(width=width, language=language, script=False)
    round_ = f"jobs/{world.switched.public_id}/rounds/2/"
    for address in ("jobs/", "models/", f"models/{world.models.model.slug}/", round_):
        page = person.visit(f"/console/{address}")
        looked_at(page, f"two-lines-{address.replace('/', '-')}{width}-{language}")
        assert max(page.eval_on_selector_all(".scroll:has(> .two-lines)", _SIDEWAYS)) <= 0, address
    page = person.visit("/console/jobs/")
    assert page.eval_on_selector("table.jobs", _OUT_OF_PLACE) == []
    running = jobs[1].public_id
    page.focus(f"#{running}-tick")
    for name in ("a", "cancel"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == f"{running}-{name}"
