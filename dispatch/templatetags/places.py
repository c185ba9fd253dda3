"""How the pages of channels, supplies, health and capacity draw slots and shares."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dispatch.queries.alert_subjects import told_by
from dispatch.queries.places import Slots
from dispatch.queries.success import DayOfSuccess
from dispatch.views.field_words import field_said, reason_said, setting_said, value_said

register = template.Library()

_BAR = 120  # the width of a bar of slots; drawn in its own pixels, or its patterns would be stretched
_WIDTH, _HEIGHT, _FLOOR = 120, 28, 0.8  # of the sparkline; below 80 % it lies at the bottom
_TARGET = 0.95
_FEW = 20  # samples, below which a point is hollow


@register.simple_tag
def slot_bar(slots: Slots) -> SafeString:
    """In use, leased, unknown and free as a bar; its name says the same numbers, and that they add up."""
    counted = {"in_use": slots.in_use, "leased": slots.leased, "unknown": slots.unknown, "free": slots.free}
    one = _BAR / max(sum(counted.values()), 1)
    start, rects = 0.0, []
    for kind, number in counted.items():
        rects.append((kind, f"{start:.2f}", f"{number * one:.2f}"))
        start += number * one
    return format_html(
        '<svg class="slot-bar" role="img" aria-label="{}" viewBox="0 0 {} 14">{}</svg>',
        slots_sentence(slots),
        _BAR,
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


@register.simple_tag
def sparkline(day: DayOfSuccess, name: str) -> SafeString:
    """Success by half-hours of the last day: a gap where nothing ended, a hollow point where little did."""
    if day.rate is None:
        return format_html('<span class="muted">n={}</span>', 0)
    told = {
        "name": name,
        "rate": f"{100 * day.rate:.1f}",
        "n": day.samples,
        "lowest": f"{100 * (day.lowest or 0):.0f}",
    }
    sentence = (
        _("%(name)s: %(rate)s %% of %(n)s succeeded in 24 h, the lowest half-hour %(lowest)s %%") % told
    )
    points = [
        (_x(index), _y(bucket.rate), bucket.samples)
        for index, bucket in enumerate(day.buckets)
        if bucket.rate is not None
    ]
    return format_html(
        '<span class="spark-line"><svg class="spark" role="img" aria-label="{}" viewBox="0 0 {} {}">'
        '<line class="target" x1="0" x2="{}" y1="{}" y2="{}"/>{}{}</svg>'
        "<span>{} % <small>n={}</small></span></span>",
        sentence,
        _WIDTH,
        _HEIGHT,
        _WIDTH,
        _y(_TARGET),
        _y(_TARGET),
        format_html_join("", '<path d="{}"/>', ((path,) for path in _paths(day))),
        format_html_join(
            "",
            '<circle class="{}" cx="{}" cy="{}" r="1.6"/>',
            (("few" if n < _FEW else "many", x, y) for x, y, n in points),
        ),
        told["rate"],
        day.samples,
    )


def _paths(day: DayOfSuccess) -> list[str]:
    """One a stretch without a gap."""
    stretches: list[list[str]] = [[]]
    for index, bucket in enumerate(day.buckets):
        if bucket.rate is None:
            stretches.append([])
        else:
            stretches[-1].append(f"{_x(index)} {_y(bucket.rate)}")
    return [f"M{'L'.join(stretch)}" for stretch in stretches if len(stretch) > 1]


def _x(index: int) -> str:
    return f"{1.5 + index * (_WIDTH - 3) / 47:.1f}"


def _y(rate: float | None) -> str:
    over = max(0.0, (rate or 0) - _FLOOR) / (1 - _FLOOR)
    return f"{_HEIGHT - 2 - over * (_HEIGHT - 4):.1f}"


register.filter("told_by", told_by)
register.filter("field_word", field_said)
register.filter("capability_value", value_said)
register.filter("reason_word", reason_said)
register.filter("setting_value", setting_said)
