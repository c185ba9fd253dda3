"""Why nothing is moving: one page that answers why waiting jobs wait, and where to mend it."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dispatch.queries.standstill import Reason, Standstill, standstill
from dispatch.routing.reasons import REASONS
from dispatch.views.access import requires
from dispatch.views.shell import page
from dispatch.views.waiting_words import verdict_sentence
from dispatch.waiting import Code

_PAGES: Final[Mapping[Code, str]] = {  # the place that mends it, where it is no single model
    Code.DISPATCHER_SILENT: "alerts",
    Code.SET_ASIDE: "alerts",
    Code.UNKNOWN_SLOTS_FULL: "uncertain",
    Code.OUT_OF_SERVICE: "channels",
    Code.UNHEALTHY: "health",
    Code.PROVIDER_PAUSE: "health",
    Code.CAPACITY_FULL: "capacity",
    Code.MODEL_NOT_PUBLISHED: "models",
    Code.NO_CAPABLE_SUPPLY: "models",
    Code.COST_LIMIT: "models",
}
_OF_ONE_MODEL: Final[Mapping[Code, str]] = {
    Code.MODEL_NOT_PUBLISHED: "publish_model",
    Code.NO_CAPABLE_SUPPLY: "model",
    Code.COST_LIMIT: "model",
}


_CHECKED_AT: Final[Mapping[str, str]] = {  # where each check of the chain is looked into
    "arriving": "jobs",
    "dispatcher": "alerts",
    "switches": "channels",
    "published": "models",
    "capability": "models",
    "health": "health",
}


@require_safe
@requires("read")
def dispatching(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    found = standstill(now)
    context = {
        "found": found,
        "waiting": found.waiting,
        "verdict": verdict_sentence(found.waiting.verdict),
        "checks": [(check, reverse(_CHECKED_AT[check.name])) for check in found.checks],
        "reasons": [(reason, _mended_at(reason)) for reason in found.reasons],
        "matrix": _matrix(found),
        "all_reasons": [(REASONS[code].sentence, jobs) for code, jobs in found.all_reasons],
    }
    return page(request, "console/dispatch.html", context, now)


def _matrix(found: Standstill) -> list[dict[str, Any]]:
    """A row a model, a column a reason; its numbers add up to the row's total, and these to all."""
    return [
        {
            "model": model,
            "cells": [counted.get(code, 0) for code in found.codes],
            "total": sum(counted.values()),
        }
        for model, counted in found.waiting.by_model.items()
    ]


def _mended_at(reason: Reason) -> str:
    """The address of the page where this reason can be taken away, or where its jobs are seen."""
    only = reason.models[0][0] if len(reason.models) == 1 else ""
    if only and reason.code in _OF_ONE_MODEL:
        return reverse(_OF_ONE_MODEL[reason.code], args=[only])
    if reason.code in _PAGES:
        return reverse(_PAGES[reason.code])
    query = {"state": "queued", **({"model": only} if only else {})}
    return f"{reverse('jobs')}?{urlencode(query)}"
