"""How the pages of channels, supplies, health and capacity draw slots and shares."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dispatch.queries.places import Slots

register = template.Library()


@register.simple_tag
def slot_bar(slots: Slots) -> SafeString:
    """In use, leased, unknown and free as a bar; its name says the same numbers, and that they add up."""
    counted = {"in_use": slots.in_use, "leased": slots.leased, "unknown": slots.unknown, "free": slots.free}
    name = slots_sentence(slots)
    start, rects = 0, []
    for kind, number in counted.items():
        rects.append((kind, start, number))
        start += number
    return format_html(
        '<svg class="slot-bar" role="img" aria-label="{}" viewBox="0 0 {} 14"'
        ' preserveAspectRatio="none">{}</svg>',
        name,
        max(start, 1),
        format_html_join("", '<rect class="{}" x="{}" width="{}" height="14"/>', rects),
    )


@register.filter
def slots_sentence(slots: Slots) -> str:
    told = {
        "used": slots.in_use,
        "leased": slots.leased,
        "unknown": slots.unknown,
        "free": slots.free,
        "limit": slots.limit,
        "over": slots.over,
    }
    if slots.over:
        sentence = _(
            "%(used)s in use + %(leased)s leased + %(unknown)s unknown slots:"
            " %(over)s more than the limit %(limit)s"
        )
    else:
        sentence = _(
            "%(used)s in use + %(leased)s leased + %(unknown)s unknown + %(free)s free = %(limit)s slots"
        )
    return sentence % told


@register.simple_tag
def share_bar(share: float, name: str) -> SafeString:
    """A share of all as a bar; `name` says it in words and numbers."""
    return format_html(
        '<svg class="share-bar" role="img" aria-label="{}" viewBox="0 0 100 10" preserveAspectRatio="none">'
        '<rect class="all" width="100" height="10"/><rect class="part" width="{}" height="10"/></svg>',
        name,
        f"{100 * share:.2f}",
    )
