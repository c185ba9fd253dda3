"""What holds on every page of the console: accessible, inside its width, without a complaint.

Here each page is shown to axe in one of the dresses, in turn; `-m everywhere` shows all of them in all."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit, Visitor, World
from tests.browser.looking import DRESSES, LANGUAGES, WIDTHS, Dress
from tests.every_page import EveryPage

EVERY = 3  # of so many pages one is shown to axe: it takes its time
# Answers that are meant to be a refusal, which the browser tells as well.
REFUSALS = ("status of 404", "status of 422")
POLICY = "addEventListener('securitypolicyviolation', event => console.error('policy: ' + event.blockedURI))"


def speak(person: Visitor, language: str) -> None:
    person.page.context.add_cookies([{"name": "django_language", "value": language, "url": person.server}])


def told(wrong: Mapping[str, Iterable[str]]) -> str:
    return "\n".join(f"{place}: {'; '.join(found)}" for place, found in wrong.items())


def complaints(person: Visitor) -> list[str]:
    return [each for each in person.complaints if not any(known in each for known in REFUSALS)]


def test_every_page_has_an_address_here(visitor: Visit, every_page: EveryPage) -> None:
    visitor("admin")
    assert every_page.unseen() == set()


def test_g1_g2_g4_g5_g20_l11_v9_hold_on_every_page(visitor: Visit, every_page: EveryPage) -> None:
    person = visitor("admin")
    person.page.add_init_script(POLICY)
    wrong: dict[str, list[str]] = {}
    for number, path in enumerate(every_page.pages()):
        speak(person, LANGUAGES[number // len(DRESSES) % 2])
        page = person.visit(path)
        for seconds in (5, 10, 60):
            person.beat(seconds)
        dress, found = DRESSES[number // EVERY % len(DRESSES)], list[str]()
        if number % EVERY == 0:
            looking.prepare(page)
            found += _by_axe(page, dress)
        found += looking.shape(page)
        found += looking.hidden_while_focused(page)
        expect(page.locator(".htmx-request")).to_have_count(0)
        if found:
            wrong[f"{path} {dress}"] = found
    assert not wrong, told(wrong)
    assert complaints(person) == []


def _by_axe(page: Page, dress: Dress) -> list[str]:
    looking.dress(page, dress.width, dress.theme)
    return looking.axe_and_unjudged(page) if dress.width == max(WIDTHS) else looking.axe(page)


@pytest.mark.everywhere
@pytest.mark.parametrize("language", LANGUAGES)
def test_g1_g2_axe_finds_nothing_on_any_page_in_any_dress(
    visitor: Visit, every_page: EveryPage, language: str
) -> None:
    person = visitor("admin", language=language)
    wrong, checks = {}, 0
    for path in every_page.pages():
        page = person.visit(path)
        looking.prepare(page)
        for dress in DRESSES:
            checks += 1
            if found := _by_axe(page, dress):
                wrong[f"{path} {dress}"] = found
    print(f"{checks} checks by axe in {language}")
    assert not wrong, told(wrong)


def keys_dialog(page: Page) -> None:
    page.goto(page.url.partition("/console/")[0] + "/console/jobs/")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


def menu(page: Page) -> None:
    page.goto(page.url.partition("/console/")[0] + "/console/jobs/")
    page.click("#you-button")
    expect(page.locator("#you")).to_be_visible()


def error_summary(page: Page) -> None:
    page.goto(page.url.partition("/console/")[0] + "/console/models/vid-hd-5s/edit/")
    page.fill('[id="osprey-pro@exact:priority"]', "1,5e6")
    page.click("#to-review")
    expect(page.locator("#summary")).to_be_focused()


def strips(page: Page) -> None:
    page.goto(page.url.partition("/console/")[0] + "/console/capacity/")
    expect(page.locator("#strips .strip").first).to_be_visible()


MOMENTS = (keys_dialog, menu, error_summary, strips)


def _in_dresses(page: Page, moment: Callable[[Page], None]) -> Iterator[str]:
    """Where a dialog or a menu is open, only the browser's own width is as it was opened."""
    for dress in DRESSES:
        looking.dress(page, dress.width, dress.theme)
        moment(page)
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", dress.theme)
        looking.prepare(page)
        yield from (f"{moment.__name__} {dress}: {each}" for each in looking.axe(page))


def test_g1_axe_finds_nothing_with_a_dialog_a_menu_a_summary_or_a_strip(
    visitor: Visit, every_page: EveryPage
) -> None:
    person = visitor("admin")
    page = person.visit("/console/help/routing/")
    for moment in MOMENTS:
        moment(page)
        looking.prepare(page)
        assert looking.axe(page) == [], moment.__name__


@pytest.mark.everywhere
@pytest.mark.parametrize("language", LANGUAGES)
def test_g1_axe_finds_nothing_in_any_dress_with_a_dialog_a_menu_a_summary_or_a_strip(
    visitor: Visit, every_page: EveryPage, language: str
) -> None:
    page = visitor("admin", language=language).visit("/console/help/routing/")
    assert [found for moment in MOMENTS for found in _in_dresses(page, moment)] == []


@pytest.mark.everywhere
@pytest.mark.parametrize("language", LANGUAGES)
def test_g4_g5_g20_v9_hold_on_every_page_in_both_languages(
    visitor: Visit, every_page: EveryPage, language: str
) -> None:
    person = visitor("admin", language=language)
    wrong = {}
    for path in every_page.pages():
        page = person.visit(path)
        page.evaluate(looking.OPEN_DETAILS)
        if found := [*looking.shape(page), *looking.hidden_while_focused(page)]:
            wrong[path] = found
    assert not wrong, told(wrong)


def test_g3_the_first_tab_lands_on_the_way_to_the_content(visitor: Visit, world: World) -> None:
    page = visitor().visit("/console/jobs/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


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
