"""What stands around every page: environment, theme, strips, navigation; and a live region's answer."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language

from dispatch.queries.needs import unacknowledged_critical
from dispatch.queries.off_air import OffAir, off_air
from dispatch.templatetags.console import clock_text, zone_name
from dispatch.views import beats
from dispatch.views.access import actions_of
from dispatch.views.beats import Tag
from dispatch.views.clock import Clock
from dispatch.views.navigation import SECTIONS, numbers

THEMES: Final = ("light", "dark", "system")
THEME_COOKIE: Final = "theme"
DENSITIES: Final = ("usual", "compact", "comfortable")
DENSITY_COOKIE: Final = "density"
KEYS_COOKIE: Final = "keys"
_CSRF_FIELD: Final = re.compile(rb'name="csrfmiddlewaretoken" value="[^"]*"')
_PRODUCTION: Final = "production"
_LANG_TAGS: Final = {"zh-hans": "zh-Hans"}


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context processor: what `base.html` needs. The strips are asked for only where they are shown."""
    user = getattr(request, "user", None)
    language = get_language() or settings.LANGUAGE_CODE
    values: dict[str, Any] = {
        "environment": settings.ENVIRONMENT_NAME,
        "is_production": settings.ENVIRONMENT_NAME == _PRODUCTION,
        "lang": _LANG_TAGS.get(language, language),
        "language": language,
        "theme": theme_of(request),
        "density": density_of(request),
        "keys": keys_of(request),
        "now": timezone.now(),
        "may": SimpleLazyObject(lambda: actions_of(user) if user else frozenset()),
        "alarms": SimpleLazyObject(unacknowledged_critical),
        "off_air": SimpleLazyObject(_loud_off_air),
        "sections": SECTIONS,
    }
    return {"shell": values | {"numbers": SimpleLazyObject(lambda: numbers(values))}}


def _loud_off_air() -> list[OffAir]:
    return [each for each in off_air() if not each.is_meant]


def theme_of(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(THEME_COOKIE, "system")
    return chosen if chosen in THEMES else "system"


def density_of(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(DENSITY_COOKIE, DENSITIES[0])
    return chosen if chosen in DENSITIES else DENSITIES[0]


def keys_of(request: HttpRequest) -> str:
    """`off` where single-letter keys are switched off."""
    return "off" if request.COOKIES.get(KEYS_COOKIE) == "off" else "on"


def is_beat(request: HttpRequest) -> bool:
    """Whether a live region asks, and not a person (or a person's way back)."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.history_restore_request


def page(request: HttpRequest, template: str, context: Mapping[str, Any], now: datetime) -> HttpResponse:
    """The whole page, or for a live region's beat only its part `live`: 304 when it would be the same."""
    if is_beat(request):
        response = answer_beat(request, f"{template}#live", {**context, "is_beat": True}, now)
    else:
        response = render(request, template, {**context, "as_of": now, "is_beat": False})
    response.headers["Vary"] = ", ".join(filter(None, (response.headers.get("Vary"), "HX-Request")))
    return response


def answer_beat(
    request: HttpRequest, template: str, context: Mapping[str, Any], now: datetime
) -> HttpResponse:
    """Draws only what may look otherwise. `as_of` is a Clock there: templates tell ages by it alone."""
    known = Tag.read(request.headers.get("HX-PTag", ""))
    told = beats.told(template, _around(request), context)
    if known.vouches(told, now):
        return _beat_answer(HttpResponse(status=304), known, now)
    clock = Clock(now)
    with beats.questions() as asked:
        response = render(request, template, {**context, "as_of": clock})
    # A CSRF token is masked anew in each answer; that alone is no change.
    looks = beats.digest(_CSRF_FIELD.sub(b"", response.content))
    answer = HttpResponse(status=304) if looks == known.looks else response
    return _beat_answer(answer, Tag.of(looks, "" if asked else told, clock), now)


def _around(request: HttpRequest) -> list[Any]:
    """What a region may show beside its context. What is lazy stays unasked: a region that shows it asks."""
    plain = {name: each for name, each in shell(request)["shell"].items() if type(each) in (str, bool)}
    local = timezone.localtime()
    return [
        request.get_full_path(),
        request.user.get_username(),
        sorted(actions_of(request.user)),
        [timezone.get_current_timezone_name(), zone_name(local)],
        plain,
    ]


def _beat_answer(response: HttpResponse, tag: Tag, now: datetime) -> HttpResponse:
    response.headers["HX-PTag"] = str(tag)
    response.headers["Console-As-Of"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    response.headers["Console-As-Of-Text"] = clock_text(now)
    return response
