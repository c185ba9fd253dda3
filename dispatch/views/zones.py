"""Two zones: a person's own for operational pages, and the installation's for everything about money."""

from collections.abc import Callable
from functools import wraps
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

ZONE_COOKIE: Final = "zone"
# For the settings page: at least one for each distance from UTC where people work, by distance.
OFFERED: Final = (
    "UTC",
    "America/Los_Angeles",
    "America/Denver",
    "America/Chicago",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Africa/Lagos",
    "Europe/Helsinki",
    "Africa/Johannesburg",
    "Africa/Nairobi",
    "Asia/Dubai",
    "Asia/Karachi",
    "Asia/Kolkata",
    "Asia/Dhaka",
    "Asia/Bangkok",
    "Asia/Shanghai",
    "Asia/Hong_Kong",
    "Asia/Taipei",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Asia/Seoul",
    "Australia/Sydney",
    "Pacific/Auckland",
)

type View = Callable[..., HttpResponseBase]


def reporting_zone() -> ZoneInfo:
    return ZoneInfo(settings.REPORTING_TIME_ZONE)


def zone_named(name: str) -> ZoneInfo | None:
    """None for what is no zone; the name may come from anybody."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def personal_zone(request: HttpRequest) -> ZoneInfo | None:
    return zone_named(request.COOKIES.get(ZONE_COOKIE, ""))


def in_reporting_zone(view: View) -> View:
    """Everything that the page shows, its header too, is in the reporting zone: one zone a page."""

    @wraps(view)
    def reported(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        with timezone.override(reporting_zone()):
            return view(request, *args, **kwargs)

    return reported
