"""The words of adding a supply, of trying it, and of probing a circuit."""

from django import template

from dispatch.views import supply_words as words
from dispatch.views import vocabulary

register = template.Library()


@register.filter
def supply_word(code: str, family: str) -> str:
    """The word for a code: `{{ code|supply_word:"needs" }}`."""
    return vocabulary.word(getattr(words, family.upper()), str(code))
