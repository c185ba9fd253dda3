"""What a program sees of a page: what axe finds, what is too small, what is cut off, what hides under what.

axe is put into a page once. A dress is a width and a theme: a page takes it on without being loaded again."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from axe_playwright_python.base import AXE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Page

LANGUAGES: Final = ("en", "zh-hans")
WIDTHS: Final = (1440, 390, 320)
THEMES: Final = ("light", "dark")
HEIGHTS: Final = {320: 640, 390: 844, 768: 1024}
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_AXE: Final = """rules => {
  scrollTo(0, 0);  // nothing lies under the header
  const told = node => node.html.slice(0, 160) + ' ' + (node.failureSummary || '');
  return axe.run(document, {
    runOnly: rules, resultTypes: ['violations', 'incomplete'], elementRef: false, xpath: false
  }).then(({violations, incomplete}) => ({
    violations: violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(told).join(' | ')}`),
    // Less drawings and glyphs, whose colours are tested as tokens, and what overlaps because every
    // <details> was opened.
    unjudged: incomplete.filter(({id}) => id === 'color-contrast').flatMap(({nodes}) => nodes)
      .filter(node => !['nonBmp', 'shortTextContent', 'bgOverlap', 'elmPartiallyObscured',
                        'elmPartiallyObscuring'].includes(node.any[0]?.data?.messageKey))
      .filter(node => !document.querySelector(node.target[node.target.length - 1])?.closest('svg'))
      .map(told),
  }));
}"""
_SIDEWAYS: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OPEN_DETAILS: Final = "document.querySelectorAll('main details').forEach(each => { each.open = true; })"
# Of what can be pressed: its width and height in CSS pixels, but for links inside of text.
_SMALL: Final = """([selector, width, height]) => Array.from(document.querySelectorAll(selector))
  .filter(element => element.checkVisibility() && !element.closest('.vh'))
  .map(element => [element.outerHTML.slice(0, 90),
                   (element.closest('label') || element).getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.width < width || box.height < height))
  .map(([html, box]) => `${Math.round(box.width)}x${Math.round(box.height)} ${html}`)"""
_PRESSED: Final = "button, input:not([type=hidden]), select, summary, a.button"
_BUTTONS: Final = "main button, main a.button, .header button"
_CHIPS: Final = """() => Array.from(document.querySelectorAll('.chip')).filter(chip =>
    !chip.textContent.trim() || chip.matches('a, button') || chip.querySelector('a, button')
    || Array.from(chip.querySelectorAll('svg')).some(icon => icon.getAttribute('aria-hidden') !== 'true'))
  .map(chip => 'chip ' + chip.outerHTML.slice(0, 90))"""
# What has focus and lies, with a part of it, under something that stays where it is while the page moves.
_HIDDEN: Final = """() => {
  const stays = Array.from(document.querySelectorAll('body *')).filter(element =>
    ['sticky', 'fixed'].includes(getComputedStyle(element).position) && element.checkVisibility()
    && !element.closest('[popover], dialog, table'));
  return Array.from(document.querySelectorAll(
      'main a[href], main button, main input:not([type=hidden]), main select, main textarea, main summary'))
    .filter(element => element.checkVisibility() && !element.disabled)
    .filter(element => {
      element.focus();
      if (document.activeElement !== element) return false;
      const box = element.getBoundingClientRect();
      return stays.some(each => {
        if (each.contains(element) || element.contains(each)) return false;
        const other = each.getBoundingClientRect();
        return box.top < other.bottom - 1 && box.bottom > other.top + 1
          && box.left < other.right - 1 && box.right > other.left + 1;
      });
    }).map(element => element.outerHTML.slice(0, 90));
}"""


@dataclass(frozen=True, slots=True)
class Dress:
    width: int
    theme: str


DRESSES: Final = tuple(Dress(width, theme) for width, theme in product(WIDTHS, THEMES))


def prepare(page: "Page") -> None:
    """Once for each page that was loaded."""
    page.evaluate(AXE_SCRIPT)
    page.evaluate(OPEN_DETAILS)


def dress(page: "Page", width: int, theme: str = "light") -> None:
    page.set_viewport_size({"width": width, "height": HEIGHTS.get(width, 900)})
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)


def axe(page: "Page") -> list[str]:
    """What is wrong, in axe's words; of a page that was prepared."""
    found: list[str] = page.evaluate(_AXE, _RULES)["violations"]
    return found


def axe_and_unjudged(page: "Page") -> list[str]:
    """With the contrasts that axe can't judge; where nothing lies over anything, there are none."""
    found: dict[str, Any] = page.evaluate(_AXE, _RULES)
    return [*found["violations"], *(f"contrast not judged: {each}" for each in found["unjudged"])]


def shape(page: "Page") -> Iterator[str]:
    """What does not depend on colours: one heading, a title, nothing sideways, nothing too small."""
    if (headings := page.locator("h1").count()) != 1:
        yield f"{headings} headings"
    if not page.title().endswith((", Console", ", 控制台")):
        yield f"title {page.title()}"
    for width in (320, 390, 768, 1024, 1440):
        dress(page, width)
        if page.evaluate(_SIDEWAYS) > 0:
            yield f"scrolls sideways at {width}"
        if width == 390:
            yield from page.evaluate(_SMALL, [_BUTTONS, 24, 44])
            yield from page.evaluate(_SMALL, [_PRESSED, 24, 24])
    yield from page.evaluate(_SMALL, [_PRESSED, 24, 24])
    yield from page.evaluate(_CHIPS)


def hidden_while_focused(page: "Page") -> list[str]:
    found: list[str] = page.evaluate(_HIDDEN)
    return found
