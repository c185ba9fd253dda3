"""The list of jobs. All of its state is in the address."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from billing.models import Customer
from dispatch.lifecycle import JobState
from dispatch.queries import job_filter, job_list
from dispatch.queries.job_filter import JobFilter
from dispatch.queries.job_list import JobLine, JobRow
from dispatch.views import job_words
from dispatch.views import vocabulary as words
from dispatch.views.access import requires
from dispatch.views.bulk import filter_of, with_moment
from dispatch.views.clock import as_it_reads
from dispatch.views.listing import Word, query_without
from dispatch.views.rows import rows_on_screen
from dispatch.views.shell import is_beat, page


@require_safe
@requires("read")
def jobs(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    wanted = job_filter.parse_filter(request.GET)
    context = _beat(request, wanted, now) if is_beat(request) else _whole(request, wanted, now)
    return page(request, "console/jobs.html", context, now)


def _whole(request: HttpRequest, wanted: JobFilter, now: datetime) -> Mapping[str, Any]:
    shown = job_list.job_page(wanted, now)
    choices = job_list.filter_choices()
    return {
        "wanted": wanted,
        "rows": shown.rows,
        "lines": _lines(shown.rows),
        "page": shown,
        "choices": choices,
        "states": [(state, words.JOB_STATES[state]) for state in JobState],
        "spans": [(span, job_words.JOB_SPANS[span]) for span in job_filter.SPANS],
        "had": [(name, job_words.JOB_HAD[name]) for name in job_filter.HAD],
        "looked_at": job_filter.LOOKED_AT,
        "sizes": job_filter.PAGE_SIZES,
        "active": active(request.GET, wanted, dict(choices.customers)),
        "keep": query_without(request.GET),
        "matching": "&".join(filter(None, (filter_of(request.GET), with_moment(now)))),
        "settled": job_list.is_settled(shown.rows),
    }


def _beat(request: HttpRequest, wanted: JobFilter, now: datetime) -> Mapping[str, Any]:
    """The rows that are on the screen, in place; and how many came since."""
    rows = job_list.rows_again(rows_on_screen(request)[: max(job_filter.PAGE_SIZES)], wanted, now)
    on_top = bool(rows) and not (wanted.older or wanted.newer)
    return {
        "wanted": wanted,
        "lines": _lines(rows),
        "arrived": job_list.newer_count(rows[0].job.public_id, wanted, now) if on_top else 0,
    }


def _lines(rows: Iterable[JobRow]) -> list[JobLine]:
    """A job that still goes on is another line only where its time reads otherwise."""
    return [replace(row.line, seconds=as_it_reads(row.seconds)) for row in rows]


def active(query: QueryDict, wanted: JobFilter, customers: Mapping[str, str] | None = None) -> list[Word]:
    """Each filter in words, with the query string that is without it."""
    found = [
        (words.word(words.JOB_STATES, state), query_without(query, value=("state", state)))
        for state in wanted.states
    ]
    customer = (customers or {}).get(wanted.customer) or _name_of(wanted.customer)
    for name, text in (
        ("model", wanted.model),
        ("modality", words.word(words.MODALITIES, wanted.modality)),
        ("customer", customer),
        ("supply", wanted.supply),
        ("since", words.word(job_words.JOB_SPANS, wanted.since)),
        ("excluded", _excluded_said(wanted.excluded)),
    ):
        if text:
            found.append((text, query_without(query, name)))
    found += [
        (words.word(job_words.JOB_HAD, had), query_without(query, value=("had", had))) for had in wanted.had
    ]
    return found


def _excluded_said(supply: str) -> str:
    return _("%(supply)s excluded") % {"supply": supply} if supply else ""


def _name_of(customer: str) -> str:
    """Of one whom the list of choices does not hold."""
    if not customer:
        return ""
    names = Customer.objects.filter(public_id=customer).values_list("name", flat=True)
    return names.first() or customer
