"""How the pages of public models write fields, gates and moves."""

from django import template
from django.utils.translation import pgettext

from dispatch.drafting.reading import whole_number
from dispatch.gates import Gate
from dispatch.templatetags.console import count, money, said
from dispatch.views import vocabulary as words
from dispatch.views.model_words import label_of, value_of

register = template.Library()


@register.filter
def field_label(field: str) -> str:
    return label_of(field)


@register.filter
def field_value(field: str, text: str | None) -> str:
    return value_of(field, text)


@register.filter
def grouped(text: str) -> str:
    """A whole number as it was typed, with its thousands set apart; else the text itself."""
    number = whole_number(text)
    return text if number is None else count(number)


@register.filter
def split(text: str) -> list[str]:
    return text.split()


@register.filter
def measured(gate: Gate) -> str:
    """What a gate found, in the reader's language; what an adapter or a document said, as it was said."""
    return pgettext("between two findings", "; ").join(
        said(note.sentence, note.values) for note in gate.found
    )


@register.filter
def money_change(micros: int, currency: str) -> str:
    """With its sign, so that more and less are told apart."""
    text = money(micros, currency)
    return f"+{text}" if micros > 0 else text


@register.filter
def outcome_or_supply(name: str) -> str:
    """A supply's name, or the outcome in words where none was chosen."""
    return words.word(words.ROUND_OUTCOMES, name)
