"""How the pages of money, people and refusals write states, changes and days."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from django import template
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dispatch.templatetags.console import pretty_json, utc
from dispatch.views import icons, money_words
from dispatch.views import vocabulary as words

register = template.Library()

_REFUSAL_TAGS: Final = {"cooldown": ("waiting", ""), "frozen": ("stop", "bad"), "ended": ("tick", "quiet")}
_PRICE_TAGS: Final = {
    "past": ("crossed", "quiet"),
    "in_force": ("tick", ""),
    "scheduled": ("waiting", ""),
    "cancelled": ("cross", "quiet"),
}


@register.simple_tag
def refusal_state(state: str) -> SafeString:
    return icons.tag(words.word(money_words.REFUSAL_STATES, state), *_REFUSAL_TAGS[state], state)


@register.simple_tag
def price_state(state: str) -> SafeString:
    return icons.tag(words.word(money_words.PRICE_STATES, state), *_PRICE_TAGS[state], state)


@register.filter
def money_word(code: str, family: str) -> str:
    """The word for a code of these pages: `{{ code|money_word:"isolation" }}`."""
    return words.word(getattr(money_words, family.upper()), str(code))


@register.filter
def day(value: date) -> str:
    return date_format(value, "Y-m-d")


@register.filter
def moment_in_utc(at: datetime) -> SafeString:
    """Beside a time in the reporting zone."""
    return format_html(
        '<time datetime="{}">{}</time>', utc(at), f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} (UTC)"
    )


@register.filter
def subject_kind(subject: str) -> str:
    return subject.partition(":")[0]


@register.filter
def subject_id(subject: str) -> str:
    return subject.partition(":")[2]


@register.filter
def change_lines(entry: Any) -> list[tuple[str, str, str]]:
    """Of an audit entry: each field with its value before and after."""
    before, after = _mapping(entry.before), _mapping(entry.after)
    names = [*before, *(name for name in after if name not in before)]
    changed = [name for name in names if before.get(name) != after.get(name) or not (before and after)]
    return [(name, _value(before, name), _value(after, name)) for name in changed]


def _mapping(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else {"": value}


def _value(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return ""
    value = values[name]
    if name == "answer" and value in words.FINDINGS:
        return words.word(words.FINDINGS, value)  # what a provider was asked, and whether it told
    return value if isinstance(value, str) else pretty_json(value)
