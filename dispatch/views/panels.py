"""Parts of a page that fail alone: what could not be read says so in its own place, and the rest stands.

A part that may be slow has an address of its own: the page links to it, and with script it is fetched once
the page is there."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from dispatch.views.shell import page

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Panel[T]:
    """`found` is None where it could not be read; then the log tells why, under `reference`."""

    found: T | None
    reference: str = ""
    failed_at: datetime | None = None

    @property
    def has_failed(self) -> bool:
        return self.failed_at is not None


def panel[T](name: str, find: Callable[[], T], now: datetime) -> Panel[T]:
    """What `find` returns must be read already: a query that waits for the template would fail there."""
    try:
        with transaction.atomic():  # a failed statement leaves those of the other panels alone
            return Panel(find())
    except Exception:
        reference = f"err_{token_hex(5)}"
        logger.exception("The panel %s could not be read: %s", name, reference)
        return Panel(None, reference, now)


def panel_page(
    request: HttpRequest,
    template: str,
    find: Callable[[], Mapping[str, Any]],
    now: datetime,
    context: Mapping[str, Any],
) -> HttpResponse:
    """A panel of its own address: the page around it, or for htmx the panel alone. `context` is there even
    where `find` fails."""
    found = panel(template, find, now)
    return page(request, template, {**context, **(found.found or {}), "panel": found}, now)
