"""Somebody who uses the console by keyboard alone: Tab, Enter, arrows, shortcuts and text; never the mouse.

A step is one deliberate act: one key command, one thing pressed, one field filled. Tabbing is part of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

MOST_TABS: Final = 250
_IS_FOCUSED: Final = "selector => document.activeElement?.matches(selector) ?? false"


class Hands:
    """`steps` counts what was done so far."""

    def __init__(self, page: "Page") -> None:
        self.page = page
        self.steps = 0

    def keys(self, *keys: str) -> None:
        """One command, e.g. `g` and then `d`, which has to come before the first is forgotten."""
        self.steps += 1
        if len(keys) > 1:
            self.page.keyboard.type("".join(keys))
        else:
            self.page.keyboard.press(*keys)

    def search(self, text: str) -> None:
        """`/`, the text pasted, Enter: one step."""
        self.steps += 1
        self.page.keyboard.press("/")
        expect(self.page.locator("#search")).to_be_focused()
        self.page.keyboard.insert_text(text)
        self.page.keyboard.press("Enter")

    def press(self, selector: str, key: str = "Enter") -> None:
        """Goes to a link, button or box and presses it."""
        self.steps += 1
        self.reach(selector)
        self.page.keyboard.press(key)

    def fill(self, selector: str, text: str) -> None:
        self.steps += 1
        self.reach(selector)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def page_of(self, fields: Mapping[str, str]) -> None:
        """One page of several, filled in and sent on: one step, as long as it may be."""
        self.steps += 1
        for selector, text in fields.items():
            self.reach(selector)
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(text)
        self.page.keyboard.press("Control+Enter")

    def choose(self, selector: str, text: str) -> None:
        """In a list of choices: its name is typed."""
        self.steps += 1
        self.reach(selector)
        self.page.keyboard.type(text)

    def move(self, selector: str, key: str) -> None:
        """A key command on what has to have focus, e.g. Alt+ArrowUp on a field."""
        self.steps += 1
        self.reach(selector)
        self.page.keyboard.press(key)

    def reach(self, selector: str) -> None:
        """By Tab from where focus is; an arrow goes on inside a group of choices."""
        for _ in range(MOST_TABS):
            if self.page.evaluate(_IS_FOCUSED, selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{selector} is not reached by {MOST_TABS} tabs on {self.page.url}")
