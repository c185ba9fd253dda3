"""What holds on every page of the console: accessible, inside its width, without a complaint."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import Visit, World

AXE = Axe()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE_OPTIONS = {"runOnly": RULES, "resultTypes": ["violations"]}
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Of what can be pressed: its width and height in CSS pixels, but for links inside of text.
SMALL = """least => Array.from(document.querySelectorAll(
    'button, input:not([type=hidden]), select, summary, a.button'))
  .filter(element => element.checkVisibility() && !element.closest('.vh'))
  .map(element => [element.outerHTML.slice(0, 90), element.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.width < least.width || box.height < least.height))
  .map(([html, box]) => `${Math.round(box.width)}x${Math.round(box.height)} ${html}`)"""

# What has focus inside of main, its top, and where the header ends.
FOCUSED = """() => {
  const element = document.activeElement;
  const html = element.closest('main') ? element.outerHTML.slice(0, 90) : '';
  const bottom = document.querySelector('.header').getBoundingClientRect().bottom;
  return [html, element.getBoundingClientRect().top, bottom];
}"""


@pytest.mark.parametrize("width", [1440, 390, 320])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_g1_axe_finds_nothing(visitor: Visit, world: World, language: str, width: int) -> None:
    person = visitor(language=language, width=width)
    found = []
    for path in world.pages():
        page = person.visit(path)
        page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
        for theme in ("light", "dark"):
            page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
            result = AXE.run(page, options=AXE_OPTIONS)
            if result.violations_count:
                found.append(f"{path} {theme}\n{result.generate_report()}")
    assert not found, "\n\n".join(found)


def test_g1_axe_finds_nothing_with_a_dialog_or_a_menu_open(visitor: Visit, world: World) -> None:
    page = visitor().visit("/console/jobs/")
    page.keyboard.press("?")
    assert AXE.run(page, options=AXE_OPTIONS).response["violations"] == []
    page.keyboard.press("Escape")
    page.click("#you-button")
    assert AXE.run(page, options=AXE_OPTIONS).response["violations"] == []


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_v9_no_page_scrolls_sideways(visitor: Visit, world: World, language: str) -> None:
    person = visitor(language=language)
    wide = []
    for path in world.pages():
        page = person.visit(path)
        for width in (320, 390, 768, 1024, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            if page.evaluate(SIDEWAYS) > 0:
                wide.append((width, path))
    assert not wide


def test_g5_what_can_be_pressed_is_large_enough(visitor: Visit, world: World) -> None:
    for width, least in ((1440, {"width": 24, "height": 24}), (390, {"width": 24, "height": 24})):
        person = visitor(width=width, name=f"person-{width}")
        for path in world.pages():
            assert person.visit(path).evaluate(SMALL, least) == [], path


def test_l11_under_the_real_policy_no_page_makes_the_browser_complain(visitor: Visit, world: World) -> None:
    person = visitor()
    person.page.add_init_script(
        "addEventListener('securitypolicyviolation', event => console.error('policy: ' + event.blockedURI))"
    )
    for path in world.pages():
        person.visit(path)
        for seconds in (5, 10, 60):
            person.beat(seconds)
        person.page.wait_for_load_state("networkidle")
    assert person.complaints == []


def test_g3_the_first_tab_lands_on_the_way_to_the_content(visitor: Visit, world: World) -> None:
    page = visitor().visit("/console/jobs/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_g4_each_page_has_one_heading_and_a_title(visitor: Visit, world: World) -> None:
    person = visitor()
    for path in world.pages():
        page = person.visit(path)
        assert page.locator("h1").count() == 1, path
        assert page.title().endswith(", Console")


def test_g20_nothing_that_has_focus_is_hidden_under_the_header(visitor: Visit, world: World) -> None:
    page = visitor(height=600).visit(f"/console/jobs/{world.switched.public_id}/")
    seen, hidden = 0, []
    for _ in range(60):
        page.keyboard.press("Tab")
        html, top, header = page.evaluate(FOCUSED)
        seen += bool(html)
        if html and top < header:
            hidden.append(html)
    assert seen > 10
    assert not hidden


def test_v3_a_chip_is_a_word_with_an_icon_and_nothing_to_press(visitor: Visit, world: World) -> None:
    page = visitor().visit("/console/")
    chips = page.locator(".chip")
    assert chips.count() >= 3
    for chip in chips.all():
        assert chip.inner_text().strip()
        assert chip.locator("svg").get_attribute("aria-hidden") == "true"
        assert chip.locator("a, button").count() == 0


def test_v5_a_dark_page_is_dark_from_its_first_paint(visitor: Visit, world: World) -> None:
    page = visitor(theme="dark", script=False).visit("/console/jobs/")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    shown = visitor(theme="dark", name="second").visit("/console/jobs/")
    assert shown.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(15, 19, 24)"


def test_v7_a_chart_has_a_name_with_a_number_and_a_table_with_the_same_times(
    visitor: Visit, world: World
) -> None:
    page = visitor().visit(f"/console/jobs/{world.switched.public_id}/")
    for chart in page.locator("svg[role=img]").all():
        assert any(character.isdigit() for character in chart.get_attribute("aria-label") or "")
    page.click("#attempts-table summary")
    assert (
        page.locator("#attempts-table tbody tr").count()
        == page.locator(".waterfall svg[role=img] rect").count()
    )
