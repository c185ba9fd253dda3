"""Parts that are fetched by themselves: late, failed and drawn; in a real browser with a real database."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import expect

from catalog.models import PublicModel
from dispatch.models import PublicationWatch
from dispatch.services.forecast_publication import forecast_publication
from tests.browser import looking
from tests.browser.conftest import Visit
from tests.figures_world import make_figures, now_within_its_hour
from tests.operations_world import PARTS, OperationsWorld, make_operations_world

MODEL = "/console/models/vid-hd-5s/"
WHOLE = (
    "/console/",
    MODEL,
    f"{MODEL}revisions/",
    "/console/models/",
    "/console/capacity/",
    "/console/supplies/kestrel-hd/",
)


@pytest.fixture
def operations(transactional_db: None) -> OperationsWorld:
    world = make_operations_world()
    make_figures(world.model, now_within_its_hour())
    for watch in PublicationWatch.objects.all():
        forecast_publication(watch.pk, timezone.now())
    return world


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Whoever reads the table waits until we are done, as it would behind a slow statement."""
    with closing(connection.copy()) as holder, holder.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute("BEGIN")
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def taken_away(table: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO taken_away")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE taken_away RENAME TO {table}")


def test_p4_while_the_slowest_part_is_late_heading_verdict_and_all_others_are_there(
    visitor: Visit, operations: OperationsWorld
) -> None:
    page = visitor().visit("/console/")
    with locked("dispatch_hourofwork"):
        page.goto(page.url, wait_until="commit")
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("#verdict")).to_contain_text("Waiting: 6.")
        expect(page.locator("#changes .events li").first).to_be_visible()
        expect(page.locator("#charts")).to_contain_text("Loading…")
    expect(page.locator("#chart-success svg[role=img]")).to_be_visible()


def test_g17_a_failed_part_shows_retry_and_reference_and_comes_back_in_its_place(
    visitor: Visit, operations: OperationsWorld
) -> None:
    with taken_away("dispatch_hourofqueue"):
        page = visitor().visit("/console/")
        failed = page.locator("#charts .panel-failed")
        expect(failed).to_contain_text("This part could not be read.")
        expect(failed.locator(".id")).to_have_text(re.compile("^err_[0-9a-f]{10}$"))
        expect(page.locator("#changes .events li").first).to_be_visible()
        expect(page.locator("#verdict")).to_contain_text("Waiting: 6.")
    page.click("#retry-charts")
    expect(page.locator("#chart-success svg[role=img]")).to_be_visible()
    assert page.url.endswith("/console/")


def test_v7_every_chart_has_a_name_with_a_number_and_its_values_as_text(
    visitor: Visit, operations: OperationsWorld
) -> None:
    person = visitor()
    seen = 0
    for path in PARTS.values():
        page = person.visit(path)
        for chart in page.locator("svg[role=img]").all():
            assert re.search(r"\d", chart.get_attribute("aria-label") or ""), path
            seen += 1
    assert seen >= 7
    page = person.visit(PARTS["overview_charts"])
    page.click("#success-table summary")
    assert page.locator("#success-table tbody tr").count() == 24


@pytest.mark.parametrize(("language", "theme", "width"), [("en", "light", 1440), ("zh-hans", "dark", 390)])
def test_g1_g5_l11_v9_hold_on_the_pages_once_their_parts_are_there(
    visitor: Visit, operations: OperationsWorld, language: str, theme: str, width: int
) -> None:
    person = visitor("publisher", language=language, theme=theme, width=width)
    wrong = {}
    for path in WHOLE:
        page = person.visit(path)
        page.wait_for_load_state("networkidle")
        looking.prepare(page)
        looking.dress(page, width, theme)
        if found := looking.axe(page):
            wrong[path] = found
        person.beat(10)
        person.beat(60)
        expect(page.locator(".htmx-request")).to_have_count(0)
        if found := list(looking.shape(page)):
            wrong[f"{path} shape"] = found
    assert wrong == {}
    assert person.complaints == []


def test_l2_a_beat_of_the_charts_keeps_the_open_table(visitor: Visit, operations: OperationsWorld) -> None:
    person = visitor()
    page = person.visit("/console/")
    page.click("#success-table summary")
    person.beat_and_wait("/overview/charts/", 60)
    assert page.locator("#success-table").get_attribute("open") is not None


def test_p5_without_script_each_part_is_a_link_away_and_a_publication_is_taken_back(
    visitor: Visit, operations: OperationsWorld
) -> None:
    page = visitor("publisher", script=False).visit("/console/")
    page.click("#charts-show")
    expect(page.locator("#chart-waiting svg[role=img]")).to_be_visible()
    page.goto(page.url.replace("/console/overview/charts/", MODEL))
    page.click("#publication-show")
    expect(page.locator("#publication-verdict")).to_contain_text("No forecast")
    page.click("#revert")
    expect(page.locator(".message")).to_contain_text("Revision 1 is back as revision 3")
    assert PublicModel.objects.get(slug="vid-hd-5s").published_revision == 3
