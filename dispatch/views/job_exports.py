"""Jobs as CSV: those that are ticked, or all that the filter matches up to a moment."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import batched
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from billing.money import written
from dispatch.queries import job_filter, job_list
from dispatch.queries.job_list import JobRow
from dispatch.services.note_export import note_export
from dispatch.views import jobs as listed
from dispatch.views.access import actor_of, requires
from dispatch.views.bulk import SAMPLES, Bulk, bulk_token, confirmed_bulk, filter_of, moment_of, ticked_of
from dispatch.views.exports import TIME_HEADS, Cell, both_times, csv_response
from dispatch.views.zones import reporting_zone

_ACTION: Final = "export jobs"
_BATCH: Final = 500
_HEADS: Final = (
    *("job", *TIME_HEADS, "finished_utc", "state", "public_model", "modality", "customer", "project"),
    *("attempts", "supply", "tier", "seconds", "dropped_inputs", "error_code"),
    *("provider_cost", "provider_currency", "charged", "customer_currency"),
)


@require_safe
@requires("read")
def export_jobs(request: HttpRequest) -> HttpResponse:
    """What would be exported, before it is."""
    return _page(request, _bulk(request.GET), 200)


@require_POST
@requires("read")
def export_jobs_now(request: HttpRequest) -> HttpResponseBase:
    query = QueryDict(request.POST.get("query", ""))
    bulk = _bulk(query)
    if confirmed_bulk(request, _ACTION, bulk) is None:
        return _page(request, bulk, 409)
    wanted = job_filter.parse_filter(query)
    ids = list(job_list.newest_ids(wanted, bulk.as_of, job_list.MOST_EXPORTED))
    told = {"filter": bulk.query, "as_of": bulk.as_of.isoformat(), "jobs": len(ids)}
    note_export(told, actor=actor_of(request), now=timezone.now())
    return csv_response(f"jobs-{bulk.as_of:%Y%m%dT%H%M%SZ}.csv", _HEADS, _exported(ids))


@require_POST
@requires("read")
def export_ticked(request: HttpRequest) -> HttpResponseBase:
    """A download: the list stays as it is, and what was ticked stays ticked."""
    ticked = ticked_of(request.POST, max(job_filter.PAGE_SIZES))
    if not ticked:
        messages.info(request, _("Nothing was ticked: nothing was exported."))
        return redirect("jobs")
    ids = job_list.ids_of(ticked)
    note_export({"jobs": len(ids)}, actor=actor_of(request), now=timezone.now())
    return csv_response(f"jobs-{timezone.now():%Y%m%dT%H%M%SZ}.csv", _HEADS, _exported(ids))


def _bulk(query: QueryDict) -> Bulk:
    as_of, wanted = moment_of(query, timezone.now()), job_filter.parse_filter(query)
    return Bulk(filter_of(query), as_of, len(job_list.newest_ids(wanted, as_of, job_list.MOST_EXPORTED)))


def _page(request: HttpRequest, bulk: Bulk, status: int) -> HttpResponse:
    query = QueryDict(bulk.query)
    wanted = job_filter.parse_filter(query)
    now = timezone.now()
    context = {
        "bulk": bulk,
        "is_stale": status != 200,
        "words": [text for text, _query in listed.active(query, wanted)],
        "samples": job_list.rows_of(job_list.newest_ids(wanted, bulk.as_of, SAMPLES), now),
        "is_capped": bulk.count == job_list.MOST_EXPORTED,
        "token": bulk_token(request, _ACTION, bulk),
        "zone_name": str(reporting_zone()),
        "as_of": now,
    }
    return render(request, "console/jobs_export.html", context, status=status)


def _exported(ids: Sequence[int]) -> Iterator[Sequence[Cell]]:
    zone = reporting_zone()
    for some in batched(ids, _BATCH):
        # The rows are made after the view has ended: they name their zone themselves.
        with timezone.override(zone):
            lines = list(_lines(job_list.rows_of(some, timezone.now())))
        yield from lines


def _lines(rows: Iterable[JobRow]) -> Iterator[Sequence[Cell]]:
    for row in rows:
        job, latest = row.job, row.latest
        finished = both_times(job.finished_at)[0] if job.finished_at else ""
        yield (
            *(job.public_id, *both_times(job.created_at), finished, job.state),
            *(job.public_model.slug, job.modality, job.customer.name, job.project),
            *(len(row.attempts), latest.supply.slug if latest else "", latest.tier if latest else ""),
            *(Decimal(f"{row.seconds:.1f}"), " ".join(job.dropped_inputs), job.error_code),
            *(Decimal(written(job.provider_cost_micros)), latest.quote_currency if latest else ""),
            *(Decimal(written(job.charged_micros)), job.customer.currency),
        )
