"""The list of jobs. All of its state is in the address."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone
from django.views.decorators.http import require_safe

from dispatch.lifecycle import JobState
from dispatch.queries import job_list
from dispatch.queries.job_list import JobFilter
from dispatch.views import vocabulary
from dispatch.views.access import requires
from dispatch.views.shell import is_beat, page

_ROWS_HEADER = "Console-Rows"


@require_safe
@requires("read")
def jobs(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    wanted = job_list.parse_filter(request.GET)
    context = _beat(request, wanted, now) if is_beat(request) else _whole(request, wanted, now)
    return page(request, "console/jobs.html", context, now)


def _whole(request: HttpRequest, wanted: JobFilter, now: datetime) -> Mapping[str, Any]:
    shown = job_list.job_page(wanted, now)
    choices = job_list.filter_choices()
    return {
        "wanted": wanted,
        "rows": shown.rows,
        "page": shown,
        "choices": choices,
        "states": [(state, vocabulary.JOB_STATES[state]) for state in JobState],
        "sizes": job_list.PAGE_SIZES,
        "active": _active(request.GET, wanted, dict(choices.customers)),
        "keep": _query(request.GET, drop=("older", "newer")),
        "settled": job_list.is_settled(shown.rows),
    }


def _beat(request: HttpRequest, wanted: JobFilter, now: datetime) -> Mapping[str, Any]:
    """The rows that are on the screen, in place; and how many came since."""
    ids = request.headers.get(_ROWS_HEADER, "").split(",")[: max(job_list.PAGE_SIZES)]
    rows = job_list.rows_again(ids, wanted, now)
    on_top = bool(rows) and not (wanted.older or wanted.newer)
    return {
        "wanted": wanted,
        "rows": rows,
        "arrived": job_list.newer_count(rows[0].job.public_id, wanted) if on_top else 0,
    }


def _active(query: QueryDict, wanted: JobFilter, customers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each filter in words, with the query string that is without it."""
    found = [
        (str(vocabulary.JOB_STATES[state]), _query(query, without=("state", state)))
        for state in wanted.states
    ]
    for name, text in (
        ("model", wanted.model),
        ("modality", str(vocabulary.MODALITIES.get(wanted.modality, ""))),
        ("customer", customers.get(wanted.customer, wanted.customer)),
    ):
        if text:
            found.append((text, _query(query, drop=(name,))))
    return found


def _query(query: QueryDict, drop: tuple[str, ...] = (), without: tuple[str, str] | None = None) -> str:
    """The query string less some keys, or less one value of a key. A changed filter drops the cursor."""
    copy = query.copy()
    for name in ("older", "newer", *drop):
        copy.pop(name, None)
    if without:
        name, value = without
        copy.setlist(name, [each for each in copy.getlist(name) if each != value])
    return copy.urlencode()
