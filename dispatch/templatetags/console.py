"""How the console writes states, money, times and ids."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from django import template
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy, ngettext, pgettext
from django.utils.translation import gettext as _

from dispatch.queries.counting import COUNTED_UP_TO
from dispatch.views import icons
from dispatch.views import vocabulary as words
from dispatch.views.access import MATRIX, ROLES
from dispatch.views.clock import Clock

register = template.Library()

_JOB_TAGS: Final = {  # state: (icon, tone)
    "queued": ("waiting", ""),
    "dispatching": ("arrow", ""),
    "running": ("running", ""),
    "fetching_output": ("download", ""),
    "cancel_requested": ("stop", ""),
    "succeeded": ("tick", ""),
    "failed": ("cross", "bad"),
    "cancelled": ("crossed", "quiet"),
    "expired": ("expired", "bad"),
}
_ATTEMPT_TAGS: Final = _JOB_TAGS | {
    "ready": ("waiting", ""),
    "submitting": ("arrow", ""),
    "submission_uncertain": ("question", "doubt"),
    "accepted": ("tick", ""),
    "provider_queued": ("waiting", ""),
    "outcome_uncertain": ("question", "doubt"),
    "generated": ("download", ""),
    "fetching": ("download", ""),
    "abandoned": ("question", "bad"),
}
_MODEL_TAGS: Final = {
    "draft": ("bars-0", "quiet"),
    "enabled": ("bars-2", ""),
    "published": ("bars-3", ""),
    "saved": ("stop", "doubt"),
    "withdrawn": ("crossed", ""),
}
_RECOVERING_PERCENT: Final = {2: 25, 3: 50, 4: 75}
_SYMBOLS: Final = {"USD": "$", "EUR": "€", "GBP": "£", "CNY": "CN¥", "JPY": "JP¥"}
_UNIT_PRICES: Final = {
    "per_second": gettext_lazy("%(amount)s %(currency)s a second"),
    "per_request": gettext_lazy("%(amount)s %(currency)s a result"),
}
_MICROS: Final = Decimal(1_000_000)


@register.simple_tag
def icon(name: str) -> SafeString:
    return icons.icon(name)


@register.simple_tag
def job_state(state: str) -> SafeString:
    return icons.tag(words.word(words.JOB_STATES, state), *_JOB_TAGS[state], state)


@register.simple_tag
def attempt_state(state: str) -> SafeString:
    return icons.tag(words.word(words.ATTEMPT_STATES, state), *_ATTEMPT_TAGS[state], state)


@register.simple_tag
def model_state(state: str) -> SafeString:
    return icons.tag(words.word(words.MODEL_STATES, state), *_MODEL_TAGS[state], state)


@register.simple_tag
def health_chip(state: str, recovery_successes: int = 0) -> SafeString:
    """Icon and word; recovering always with its share of the capacity."""
    text, drawing = words.word(words.HEALTH, state), state
    if state == "recovering":
        percent = _RECOVERING_PERCENT.get(recovery_successes, 25)
        text, drawing = _("Recovering %(percent)s %%") % {"percent": percent}, f"recovering-{percent}"
    return format_html(
        '<span class="chip" data-health="{}">{}<span>{}</span></span>', state, icons.icon(drawing), text
    )


@register.filter
def health_word(state: str) -> str:
    """A state of health in words; `recovering-25` with its share of the capacity."""
    name, _dash, percent = state.partition("-")
    if percent:
        return _("Recovering %(percent)s %%") % {"percent": percent}
    return words.word(words.HEALTH, name)


@register.simple_tag
def slots(used: int, unknown: int, capacity: int) -> SafeString:
    """Slots in use, held by unknown outcomes, and free, as a bar with the same numbers beside it."""
    most = max(capacity, used + unknown, 1)
    name = _("%(used)s in use, %(unknown)s unknown, %(free)s free of %(capacity)s slots") % {
        "used": used,
        "unknown": unknown,
        "free": max(0, capacity - used - unknown),
        "capacity": capacity,
    }
    return format_html(
        '<span class="slots"><svg role="img" aria-label="{}" viewBox="0 0 {} 14" preserveAspectRatio="none">'
        '<rect class="used" width="{}" height="14"/><rect class="unknown" x="{}" width="{}" height="14"/>'
        '</svg><span aria-hidden="true">{}+{}/{}</span></span>',
        name,
        most,
        used,
        used,
        unknown,
        used,
        unknown,
        capacity,
    )


@register.filter
def price_words(document: Mapping[str, Any]) -> str:
    """What a cost rule charges, in short: the unit price, or how many whole prices it has."""
    currency = document["currency"]
    brackets = document.get("brackets") or ()
    if brackets and "per_second" not in document:
        said = ngettext("%(n)s whole price, %(currency)s", "%(n)s whole prices, %(currency)s", len(brackets))
        return said % {"n": len(brackets), "currency": currency}
    for mode, sentence in _UNIT_PRICES.items():
        if mode in document:
            return str(sentence) % {"amount": document[mode], "currency": currency}
    return str(document["mode"])


@register.simple_tag
def severity(code: str) -> SafeString:
    return format_html(
        '<span class="severity-{}">{}<span>{}</span></span>',
        code,
        icons.icon(code),
        words.word(words.SEVERITIES, code),
    )


@register.filter
def word(code: str, family: str) -> str:
    """The word for a code: `{{ code|word:"tiers" }}`."""
    return words.word(getattr(words, family.upper()), str(code))


@register.filter
def listed(codes: Sequence[str], family: str) -> str:
    """The words for several codes, as one list."""
    return pgettext("between the items of a list", ", ").join(word(code, family) for code in codes)


@register.filter
def of(values: Mapping[Any, Any] | None, key: Any) -> Any:
    """The value of a key that only the template knows; None also where there are no values."""
    return values.get(key) if values else None


@register.filter
def said(sentence: str, values: Mapping[str, Any] | None = None) -> str:
    """A sentence of a pure module, translated, with its values in place."""
    return _(sentence).format_map(values or {})


@register.filter
def short_id(value: str) -> str:
    """A public id shortened in its middle: the last four tell two apart."""
    prefix, _underscore, body = str(value).partition("_")
    return f"{prefix}_{body[:4]}…{body[-4:]}" if len(body) > 10 else str(value)


@register.filter
def money(micros: int | None, currency: str) -> str:
    """Micros as an amount with its currency, to the last digit that is not zero, at least cents."""
    if micros is None:
        return "—"
    amount = (Decimal(micros) / _MICROS).normalize()
    return _amount(amount, max(2, -int(amount.as_tuple().exponent)), currency)


@register.filter
def money_about(micros: int | None, currency: str) -> str:
    """An estimate: four places say enough."""
    return "—" if micros is None else _amount(Decimal(micros) / _MICROS, 4, currency)


def _amount(amount: Decimal, places: int, currency: str) -> str:
    return _written(amount, places, currency, get_language())


@lru_cache(maxsize=2_000)  # a list has few prices, and grouping digits takes longer than all else
def _written(amount: Decimal, places: int, currency: str, _language: str | None) -> str:
    symbol, sign = _SYMBOLS.get(currency), "−" if amount < 0 else ""
    text = number_format(round(abs(amount), places), decimal_pos=places, use_l10n=True, force_grouping=True)
    return f"{sign}{symbol}{text}" if symbol else f"{sign}{text} {currency}"


def zone_name(at: datetime) -> str:
    """The offset of a local time, e.g. UTC, UTC+8, UTC−3:30."""
    offset = at.utcoffset() or timedelta()
    minutes = int(offset.total_seconds() // 60)
    if minutes == 0:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '−'}{hours}" + (f":{rest:02}" if rest else "")


def clock_text(at: datetime) -> str:
    """Time of day and zone, as in the header."""
    local = timezone.localtime(at)
    return f"{local:%H:%M:%S} ({zone_name(local)})"


@register.filter
def moment(at: datetime | None) -> SafeString | str:
    """A point in time, the same in every language, with its zone."""
    if at is None:
        return "—"
    local = timezone.localtime(at)
    return _time(at, f"{local:%Y-%m-%d %H:%M:%S} ({zone_name(local)})")


@register.filter
def moment_in_list(at: datetime | None) -> SafeString | str:
    """Without the zone: for a column or a list whose heading names it."""
    return "—" if at is None else _time(at, _to_the_second(timezone.localtime(at), " "))


@register.filter
def clock_words(at: datetime) -> str:
    return clock_text(at)


@register.filter
def utc(at: datetime) -> str:
    return _to_the_second(at.astimezone(UTC), "T") + "Z"


def _to_the_second(at: datetime, between: str) -> str:
    return at.replace(tzinfo=None).isoformat(between, "seconds")


@register.filter
def clock(at: datetime | None) -> SafeString | str:
    return "—" if at is None else _time(at, clock_text(at))


def _time(at: datetime, text: str) -> SafeString:
    return SafeString(f'<time datetime="{utc(at)}">{text}</time>')  # digits and signs, none of them HTML's


@register.simple_tag
def zone() -> str:
    """The name of the zone that times on this page are in."""
    return zone_name(timezone.localtime())


@register.filter
def span(seconds: float | timedelta | None) -> str:
    """A duration in the two units that matter: 0.4 s, 12 s, 4 min 20 s, 3 h 5 min, 2 d 1 h."""
    if seconds is None:
        return "—"
    total = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    if total < 10:
        return _("%(seconds)s s") % {"seconds": number_format(Decimal(f"{max(total, 0):.1f}"), use_l10n=True)}
    whole = round(total)
    if whole < 60:
        return _("%(seconds)s s") % {"seconds": whole}
    if whole < 3600:
        return _("%(minutes)s min %(seconds)s s") % {"minutes": whole // 60, "seconds": whole % 60}
    if whole < 86_400:
        return _("%(hours)s h %(minutes)s min") % {"hours": whole // 3600, "minutes": whole % 3600 // 60}
    return _("%(days)s d %(hours)s h") % {"days": whole // 86_400, "hours": whole % 86_400 // 3600}


@register.simple_tag
def span_between(start: datetime | None, end: datetime | None) -> str:
    return "—" if start is None or end is None else span(end - start)


@register.filter
def axis(seconds: float) -> str:
    """A tick of a time axis: short, in one unit or as minutes and seconds."""
    whole = round(seconds)
    if whole < 120:
        return _("%(seconds)s s") % {"seconds": whole}
    return f"{whole // 60}:{whole % 60:02}" if whole < 3600 else f"{whole // 3600} h"


@register.filter
def milliseconds(value: int) -> float:
    """As seconds, for `span`."""
    return value / 1000


@register.filter
def percent(share: float) -> str:
    return f"{share:.0%}"


@register.filter
def percent_1(share: float) -> str:
    """A rate of success: one place tells 99.5 from 98.5."""
    return f"{100 * share:.1f} %"


@register.filter
def age(start: datetime | None, now: datetime | Clock) -> str:
    """How long it has been since `start`; a beat's clock notes how long that will read so."""
    if isinstance(now, Clock):
        return "—" if start is None else span(now.age(start))
    return span_between(start, now)


@register.filter
def file_size(size: int) -> str:
    value, unit = Decimal(size), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{number_format(value, decimal_pos=0 if unit == 'B' else 1, use_l10n=True)} {unit}"


@register.filter
def count(number: int) -> str:
    return number_format(number, use_l10n=True, force_grouping=True)


@register.filter
def capped(number: int) -> str:
    """A count that stopped at its cap says so."""
    return f"{count(number)}+" if number >= COUNTED_UP_TO else count(number)


@register.filter
def pretty_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


@register.filter
def roles_for(action: object) -> str:
    """The roles that allow an action, in their order; empty for what is no action."""
    allowed = MATRIX.get(str(action), frozenset())
    return ", ".join(role for role in ROLES if role in allowed)


@register.simple_tag
def copy_button(text: str) -> SafeString:
    """Copies `text`; absent without script, where the text itself can be marked."""
    return format_html(
        '<button type="button" class="plain" data-needs-script data-copy="{}" data-copied="{}">{}</button>',
        text,
        _("Copied"),
        _("Copy"),
    )
