"""How the console looks to eyes that differ: greyscale, forced colours, larger text, more space."""

from itertools import combinations

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visit, World
from tests.every_page import EveryPage

HEALTH_ICONS = (
    *("healthy", "degraded", "circuit_open", "probing", "disabled"),
    *("recovering-25", "recovering-50", "recovering-75"),
)
# The drawings in one colour and size, each alone on white.
ALONE = """drawings => {
  document.body.replaceChildren(...drawings.map(svg => {
    const box = document.createElement('div');
    box.innerHTML = svg;
    box.className = 'alone';
    Object.assign(box.style, {width: '28px', height: '28px', color: 'black', background: 'white'});
    Object.assign(box.firstChild.style, {width: '28px', height: '28px', display: 'block'});
    return box;
  }));
}"""
GREYS = """async png => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + png;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [image.width, image.height];
  const drawn = canvas.getContext('2d');
  drawn.drawImage(image, 0, 0);
  const {data} = drawn.getImageData(0, 0, image.width, image.height);
  return Array.from({length: data.length / 4}, (_, at) =>
    Math.round(0.2126 * data[4 * at] + 0.7152 * data[4 * at + 1] + 0.0722 * data[4 * at + 2]));
}"""
BORDERS = """selector => Array.from(document.querySelectorAll(selector))
  .filter(element => element.checkVisibility()).filter(element => {
    const style = getComputedStyle(element);
    return !['Top', 'Right', 'Bottom', 'Left'].some(side =>
      style[`border${side}Style`] !== 'none' && parseFloat(style[`border${side}Width`]) > 0);
  }).map(element => element.outerHTML.slice(0, 90))"""
RING = "() => getComputedStyle(document.activeElement).outlineStyle"
# As WCAG 1.4.12 asks for, through the object model: the page's policy forbids inline styles.
SPACED = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
    word-spacing: 0.16em !important; } p { margin-block-end: 2em !important; }`);
  document.adoptedStyleSheets.push(sheet);
}"""
# Text that is cut off: what is larger than its box where the box hides it, unless dots say so.
CUT = """() => Array.from(document.querySelectorAll(
    '.header *, .chip, .tag, button, .button, h1, h2, .strip *, summary'))
  .filter(element => element.checkVisibility() && !element.closest('.vh, .clip, svg, select'))
  .filter(element => {
    const style = getComputedStyle(element);
    if (style.clipPath !== 'none' || style.textOverflow === 'ellipsis') return false;
    return (style.overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1)
      || (style.overflowY !== 'visible' && element.scrollHeight > element.clientHeight + 1);
  }).map(element => element.outerHTML.slice(0, 90))"""
OVERLAPS = """selector => {
  const shown = Array.from(document.querySelectorAll(selector)).filter(element =>
    element.checkVisibility() && element.getClientRects().length && !element.closest('.vh'));
  const found = [];
  for (const [at, one] of shown.entries()) for (const other of shown.slice(at + 1)) {
    if (one.contains(other) || other.contains(one)) continue;
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) {
      found.push(`${one.outerHTML.slice(0, 70)} over ${other.outerHTML.slice(0, 70)}`);
    }
  }
  return found;
}"""


def _greys(page: Page, number: int) -> list[int]:
    from base64 import b64encode

    picture = page.locator(".alone").nth(number).screenshot()
    return page.evaluate(GREYS, b64encode(picture).decode())


def test_v4_the_eight_icons_of_health_differ_in_greyscale(visitor: Visit, world: World) -> None:
    from dispatch.views.icons import icon

    page = visitor().visit("/console/help/routing/")
    page.evaluate(ALONE, [str(icon(name)) for name in HEALTH_ICONS])
    greys = {name: _greys(page, number) for number, name in enumerate(HEALTH_ICONS)}
    assert {len(each) for each in greys.values()} == {28 * 28}
    for one, other in combinations(HEALTH_ICONS, 2):
        different = sum(abs(a - b) > 32 for a, b in zip(greys[one], greys[other], strict=True))
        assert different > 0.08 * 28 * 28, (one, other, different)


def test_v6_in_forced_colours_chips_banners_and_the_ring_of_focus_have_edges(
    visitor: Visit, every_page: EveryPage
) -> None:
    page = visitor("admin").visit("/console/channels/osprey-main/")
    page.emulate_media(forced_colors="active")
    for path in ("/console/channels/osprey-main/", "/console/", "/console/alerts/"):
        page.goto(page.url.partition("/console/")[0] + path)
        assert page.evaluate(BORDERS, ".chip, .tag, .strip, .maintenance, .notice, .card, main button") == []
    for _ in range(8):
        page.keyboard.press("Tab")
        assert page.evaluate(RING) != "none"


@pytest.mark.parametrize("width", [1440, 390])
def test_v8_with_text_of_twice_the_size_or_more_space_nothing_is_cut_off_or_overlaps(
    visitor: Visit, every_page: EveryPage, width: int
) -> None:
    person = visitor("admin", width=width)
    wrong = {}
    for path in ("/console/", "/console/jobs/", "/console/channels/osprey-main/", "/console/alerts/"):
        for change in ("() => { document.documentElement.style.fontSize = '200%'; }", SPACED):
            page = person.visit(path)
            page.evaluate(change)
            found = page.evaluate(CUT)
            for selector in (".header *", "main .chip, main .tag", "main button, main .button"):
                found += page.evaluate(OVERLAPS, selector)
            if found:
                wrong[path, change[:30]] = found
    assert wrong == {}, wrong


def test_i6_a_chart_with_an_axis_of_time_names_its_zone(visitor: Visit, every_page: EveryPage) -> None:
    page = visitor("admin").visit("/console/")
    page.locator("svg.scale .zone").first.wait_for()  # they come after the page, all at once
    zones = page.locator("svg.scale .zone").all_text_contents()
    assert zones == ["UTC"] * page.locator("svg.chart:has(.ticks)").count()
    assert zones
