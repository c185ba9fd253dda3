"""How the pages of capacity and channels write a place's peak, and when it is full."""

from collections.abc import Mapping

from django import template

from dispatch.capacity import Kind
from dispatch.queries.fullness import Fullness
from dispatch.queries.places import Key

register = template.Library()

_KINDS = {"group": Kind.GROUP, "channel": Kind.CHANNEL, "supply": Kind.SUPPLY}


@register.simple_tag
def fullness_of(found: Mapping[Key, Fullness] | None, kind: str, pk: int) -> Fullness | None:
    return found.get((_KINDS[kind].value, pk)) if found else None
