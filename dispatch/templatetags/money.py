"""How the pages of money, people and refusals write states, changes and days."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from billing.money import written
from catalog.models import AuditEntry
from dispatch.templatetags.console import moment, utc
from dispatch.views import icons, money_words
from dispatch.views import vocabulary as words
from dispatch.views.audit_changes import ChangedField, changes_between, changes_of
from dispatch.views.audit_words import HEALTH_PARAMETERS

register = template.Library()

_REFUSAL_TAGS: Final = {"cooldown": ("waiting", ""), "frozen": ("stop", "bad"), "ended": ("tick", "quiet")}
_SHORT: Final = 24  # characters of a value within a line
_OWN_SOURCES: Final = ("reconciler", "pulse", "housekeeping")  # no person and no command
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
def told(value: str | datetime | None) -> SafeString | str:
    """What an audit entry says of a field, before or after."""
    return "—" if value is None else moment(value) if isinstance(value, datetime) else value


@register.filter
def told_in_short(value: str | datetime | None) -> str:
    """The same within a line, or nothing."""
    if isinstance(value, datetime):
        return f"{timezone.localtime(value):%Y-%m-%d %H:%M}"
    text = value or ""
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


@register.filter
def who(entry: AuditEntry) -> str:
    """A person, a command, or a part of the product in words."""
    return words.word(money_words.SOURCES, entry.source) if entry.source in _OWN_SOURCES else entry.actor


@register.filter
def note_said(note: str) -> str:
    """Of a ledger line: what a person wrote, or what became of the job."""
    state = note.removeprefix("job ")
    return words.word(words.JOB_STATES, state) if note != state and state in words.JOB_STATES else note


@register.filter
def team_value(value: object, name: str) -> object:
    """A setting of the installation by the name of its variable: micros as an amount."""
    return written(value) if name.endswith("_MICROS") and isinstance(value, int) else value


@register.filter
def health_parameter(name: str) -> str:
    return words.word(HEALTH_PARAMETERS, name)


@register.filter
def changes_to(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[ChangedField]:
    """Of two documents, such as two prices: `{{ present.document|changes_to:document }}`."""
    return changes_between(before or None, after)


@register.filter
def fields(document: Mapping[str, Any]) -> list[ChangedField]:
    """All that a document says, each field with what is `after`."""
    return changes_between(None, document)


register.filter("changes", changes_of)
