"""Degraded deliveries: what was dropped, by whom, whether the customer was told, and what it paid."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import batched
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from billing.money import written
from dispatch.queries import cuts, degraded_list
from dispatch.queries.days import Days, parse_days
from dispatch.queries.degraded_list import DegradedFilter, DegradedRow
from dispatch.views import money_words
from dispatch.views import vocabulary as words
from dispatch.views.access import requires
from dispatch.views.exports import TIME_HEADS, Cell, both_times, csv_response
from dispatch.views.listing import Word, query_without
from dispatch.views.shell import page
from dispatch.views.zones import in_reporting_zone, reporting_zone

_HEADS: Final = (
    *TIME_HEADS,
    *("job", "customer", "public_model", "supply", "asked", "delivered", "dropped_inputs"),
    *("price_asked", "charged", "currency"),
)
_BATCH: Final = 500


@require_safe
@requires("read")
@in_reporting_zone
def degraded(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    days, wanted = parse_days(request.GET, now, reporting_zone()), degraded_list.parse_filter(request.GET)
    cursor = cuts.parse_cursor(request.GET)
    found, rows = degraded_list.degraded_page(days, wanted, cursor)
    context = {
        "days": days,
        "wanted": wanted,
        "cursor": cursor,
        "cut": found,
        "rows": rows,
        "sizes": cuts.PAGE_SIZES,
        "found": degraded_list.groups_of(days),
        "active": _active(request, days, wanted),
        "keep": query_without(request.GET),
    }
    return page(request, "console/degraded.html", context, now)


@require_safe
@requires("read")
@in_reporting_zone
def degraded_csv(request: HttpRequest) -> HttpResponseBase:
    days = parse_days(request.GET, timezone.now(), reporting_zone())
    rows = _exported(days, degraded_list.parse_filter(request.GET))
    return csv_response(f"degraded-{days.first}-{days.last}.csv", _HEADS, rows)


def _exported(days: Days, wanted: DegradedFilter) -> Iterator[Sequence[Cell]]:
    # The rows are made after the view has ended: they name their zone themselves.
    for jobs in batched(degraded_list.every_job(days, wanted), _BATCH):
        with timezone.override(days.zone):
            made = [_row(each) for each in degraded_list.rows_of(jobs)]
        yield from made


def _row(row: DegradedRow) -> Sequence[Cell]:
    job = row.job
    assert job.finished_at is not None  # noqa: S101 - a delivered job has ended
    return (
        *both_times(job.finished_at),
        *(job.public_id, job.customer.name, job.public_model.slug, row.supply),
        *(job.requested_profile, job.actual_profile, " ".join(job.dropped_inputs)),
        *(Decimal(written(job.reserved_micros)), Decimal(written(job.charged_micros)), job.customer.currency),
    )


def _active(request: HttpRequest, days: Days, wanted: DegradedFilter) -> list[Word]:
    found: list[Word] = []
    if not days.is_usual:
        found.append((money_words.days_said(days), query_without(request.GET, "from", "to")))
    if wanted.input:
        found.append((words.word(words.INPUTS, wanted.input), query_without(request.GET, "input")))
    if wanted.supply:
        found.append((wanted.supply, query_without(request.GET, "supply")))
    return found
