"""Charts as SVG: drawn in per cent of their width and in pixels of their height, so that text keeps its size.

Each has a sentence with numbers as its name; the same numbers stand beside it as text or as a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dispatch.queries.hours import Cost, Pair, Picks, Rate
from dispatch.templatetags.console import count, money_about, percent, percent_1, zone_name

register = template.Library()

_TOP, _HIGH, _FOOT = 8, 104, 20  # px: above the plot, the plot, the axis below it
_FLOOR = 0.8  # of success: what is worse lies at the bottom
_FEW = 20  # samples, below which a point is hollow
_TICK_EVERY: Final = 6  # hours
_STEPS: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class _Point:
    index: int
    share: float  # of the height
    is_few: bool = False


def _place(index: int, number: int) -> str:
    """The middle of one of `number` hours."""
    return f"{100 * (index + 0.5) / number:.2f}"


def _level(share: float) -> str:
    return f"{_TOP + _HIGH * (1 - share):.1f}"


def _paths(points: Sequence[_Point | None], number: int) -> SafeString:
    """One a stretch without a gap, in hundredths of the width."""
    stretches: list[list[str]] = [[]]
    for point in points:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(f"{_place(point.index, number)} {_level(point.share)}")
    drawn = ((f"M{'L'.join(stretch)}",) for stretch in stretches if len(stretch) > 1)
    return format_html_join("", '<path d="{}" vector-effect="non-scaling-stroke"/>', drawn)


def _dots(points: Iterable[_Point | None], number: int) -> SafeString:
    return format_html_join(
        "",
        '<circle class="{}" cx="{}%" cy="{}" r="2.5"/>',
        (
            ("few" if point.is_few else "many", _place(point.index, number), _level(point.share))
            for point in points
            if point is not None
        ),
    )


def _lines(
    name: str,
    hours: Sequence[datetime],
    now: Sequence[_Point | None],
    before: Sequence[_Point | None],
    levels: Sequence[tuple[float, str]],
) -> SafeString:
    """Two lines on one axis: the last day, and dashed the same hours a week before."""
    whole = _TOP + _HIGH
    return format_html(
        '<span class="chart-row">{}<svg class="chart" role="img" aria-label="{}" height="{}">{}'
        '<svg viewBox="0 0 100 {}" width="100%" height="{}" preserveAspectRatio="none">'
        '<g class="line-before">{}</g><g class="line-now">{}</g></svg>{}{}</svg></span>',
        _scale(levels, hours),
        name,
        whole + _FOOT,
        _grid(levels),
        whole,
        whole,
        _paths(before, len(hours)),
        _paths(now, len(hours)),
        _dots(now, len(hours)),
        _axis(hours),
    )


def _scale(levels: Sequence[tuple[float, str]], hours: Sequence[datetime]) -> SafeString:
    """The numbers left of a plot, each at its line; and the zone of the hours, left of their axis."""
    texts = ((_level(share), text) for share, text in levels)
    return format_html(
        '<svg class="scale" aria-hidden="true" width="44" height="{}">{}'
        '<text class="zone" x="38" y="{}">{}</text></svg>',
        _TOP + _HIGH + _FOOT,
        format_html_join("", '<text x="38" y="{}" dy="4">{}</text>', texts),
        _TOP + _HIGH + 15,
        zone_name(timezone.localtime(hours[-1])),
    )


def _grid(levels: Sequence[tuple[float, str]]) -> SafeString:
    lines = ((_level(share),) for share, _text in levels)
    return format_html_join("", '<line class="grid-line" x1="0" x2="100%" y1="{0}" y2="{0}"/>', lines)


def _axis(hours: Sequence[datetime]) -> SafeString:
    """A tick each few hours, in the zone of the page."""
    drawn = [
        (_place(index, len(hours)), _TOP + _HIGH + 15, f"{timezone.localtime(hour):%H:%M}")
        for index, hour in enumerate(hours)
        if index % _TICK_EVERY == _TICK_EVERY // 2
    ]
    ticks = format_html_join("", '<text x="{}%" y="{}">{}</text>', drawn)
    return format_html('<g class="ticks">{}</g>', ticks)


def _nice(most: float) -> int:
    """The next round number at or above `most`: the top of an axis."""
    power = 1
    while True:
        for step in _STEPS:
            if step * power >= most:
                return step * power
        power *= 10


@register.simple_tag
def success_chart(pairs: Sequence[Pair[Rate]], rate: Rate, before: Rate) -> SafeString:
    """From 80 to 100 %: a gap where nothing ended, a hollow point where little did."""
    said = _("Success by the hour: %(rate)s of %(n)s in the last 24 h; a week before %(before)s of %(m)s")
    told = {"rate": rate_text(rate), "n": rate.samples, "before": rate_text(before), "m": before.samples}
    return _lines(
        said % told,
        [pair.hour for pair in pairs],
        [_of_rate(index, pair.now) for index, pair in enumerate(pairs)],
        [_of_rate(index, pair.before) for index, pair in enumerate(pairs)],
        [(0, percent(_FLOOR)), (0.5, percent((1 + _FLOOR) / 2)), (1, percent(1))],
    )


def _of_rate(index: int, rate: Rate) -> _Point | None:
    if rate.value is None:
        return None
    return _Point(index, max(0.0, rate.value - _FLOOR) / (1 - _FLOOR), rate.samples < _FEW)


@register.simple_tag
def waiting_chart(pairs: Sequence[Pair[int | None]]) -> SafeString:
    """The most that waited in each hour, from zero."""
    most = max((pair.now or 0 for pair in pairs), default=0)
    most_before = max((pair.before or 0 for pair in pairs), default=0)
    top = _nice(max(most, most_before, 1))
    said = _("Jobs waiting, the most of each hour: at most %(n)s in the last 24 h; a week before %(m)s")
    return _lines(
        said % {"n": count(most), "m": count(most_before)},
        [pair.hour for pair in pairs],
        [_of_number(index, pair.now, top) for index, pair in enumerate(pairs)],
        [_of_number(index, pair.before, top) for index, pair in enumerate(pairs)],
        [(0, "0"), (1, count(top))],
    )


def _of_number(index: int, number: int | None, top: int) -> _Point | None:
    return None if number is None else _Point(index, number / top)


@register.filter
def rate_text(rate: Rate) -> str:
    return "—" if rate.value is None else percent_1(rate.value)


@register.simple_tag
def cost_bar(cost: Cost, costs: Sequence[Cost]) -> SafeString:
    """What a success cost, on the scale of those of its currency: what was delivered, and what was paid for
    nothing."""
    same = (each.per_success_micros or 0 for each in costs if each.currency == cost.currency)
    share = (cost.per_success_micros or 0) / max(*same, 1)
    wasted = share * cost.wasted_share
    said = _("%(supply)s: a success cost %(cost)s, of it %(wasted)s for attempts that delivered nothing")
    told = {
        "supply": cost.supply,
        "cost": money_about(cost.per_success_micros, cost.currency),
        "wasted": percent(cost.wasted_share),
    }
    return format_html(
        '<svg class="cost-bar" role="img" aria-label="{}" height="14">'
        '<rect class="all" width="100%" height="14"/><rect class="part" width="{}%" height="14"/>'
        '<rect class="wasted" x="{}%" width="{}%" height="14"/></svg>',
        said % told,
        f"{100 * (share - wasted):.2f}",
        f"{100 * (share - wasted):.2f}",
        f"{100 * wasted:.2f}",
    )


@register.simple_tag
def picks_chart(picks: Picks) -> SafeString:
    """Columns by the hour, stacked by supply, from zero."""
    hours = len(picks.hours)
    top = _nice(max([sum(column) for column in picks.by_hour] + [1]))
    wide = 100 / hours
    rects = [
        (place, f"{hour * wide + wide * 0.1:.2f}", f"{wide * 0.8:.2f}", *_span(column, place, top))
        for hour, column in enumerate(picks.by_hour)
        for place, number in enumerate(column)
        if number
    ]
    levels = [(0.0, "0"), (1.0, count(top))]
    said = _("Selections by the hour, %(n)s in 24 h: %(shares)s")
    shares = ", ".join(
        f"{series_name(supply)} {percent(total / picks.total)}"
        for supply, total in zip(picks.supplies, picks.totals, strict=True)
    )
    return format_html(
        '<span class="chart-row">{}<svg class="chart" role="img" aria-label="{}" height="{}">{}{}{}</svg>'
        "</span>",
        _scale(levels, picks.hours),
        said % {"n": count(picks.total), "shares": shares},
        _TOP + _HIGH + _FOOT,
        _grid(levels),
        format_html_join("", '<rect class="series-{}" x="{}%" width="{}%" y="{}" height="{}"/>', rects),
        _axis(picks.hours),
    )


def _span(column: Sequence[int], place: int, top: int) -> tuple[str, str]:
    """Where one part of a column begins, and how high it is."""
    over = sum(column[: place + 1]) / top
    return _level(over), f"{_HIGH * column[place] / top:.1f}"


@register.filter
def series_name(supply: str) -> str:
    """The last series holds the rest."""
    return supply or _("others")


@register.filter
def binding_share(picks: Picks | None, binding: str) -> float | None:
    return picks.share(binding) if picks else None


@register.filter
def series(picks: Picks) -> list[dict[str, Any]]:
    """Each supply with its number, its total and its share."""
    return [
        {"index": index, "name": series_name(supply), "total": total, "share": total / picks.total}
        for index, (supply, total) in enumerate(zip(picks.supplies, picks.totals, strict=True))
    ]


@register.filter
def hours_of(picks: Picks) -> list[tuple[datetime, Sequence[int]]]:
    return list(zip(picks.hours, picks.by_hour, strict=True))


@register.filter
def hour_text(hour: datetime) -> str:
    return f"{timezone.localtime(hour):%m-%d %H:%M}"


@register.filter
def points(difference: float) -> str:
    """A difference of two shares, with its sign."""
    sign = "−" if difference < 0 else "+"
    return f"{sign}{points_alone(abs(difference))}"


@register.filter
def points_alone(difference: float) -> str:
    return _("%(n)s points") % {"n": f"{100 * difference:.1f}"}


@register.filter
def relative(part: float) -> str:
    """A difference as a part of what was expected, with its sign."""
    return f"{'−' if part < 0 else '+'}{abs(part):.0%}"
