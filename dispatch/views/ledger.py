"""The ledger: both books, line by line, in the reporting zone; their sums; and their export."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import batched
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from billing.models import CreditEntry, Customer, ProviderUsageEntry
from billing.money import written
from catalog.models import Supply
from dispatch.queries import book_totals, books, cuts
from dispatch.queries.books import BookFilter, Line
from dispatch.queries.days import Days, parse_days
from dispatch.views import money_words
from dispatch.views import vocabulary as words
from dispatch.views.access import requires
from dispatch.views.exports import TIME_HEADS, Cell, both_times, csv_response
from dispatch.views.listing import Word, query_without
from dispatch.views.shell import page
from dispatch.views.zones import in_reporting_zone, reporting_zone

_HEADS: Final = (
    *("line", *TIME_HEADS, "book", "kind", "customer", "job", "attempt", "supply"),
    *("amount", "currency", "platform_loss", "cost_rule_version", "note"),
)
_BATCH: Final = 500
_SUPPLIES_SHOWN: Final = 500


@require_safe
@requires("read")
@in_reporting_zone
def ledger(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    wanted, cursor = books.parse_filter(request.GET), cuts.parse_cursor(request.GET)
    days = parse_days(request.GET, now, reporting_zone())
    found = cuts.cut(books.lines(wanted, days), cursor)
    kinds = (CreditEntry if wanted.book == books.CUSTOMERS else ProviderUsageEntry).Kind.values
    context = {
        "wanted": wanted,
        "days": days,
        "cursor": cursor,
        "cut": found,
        "jobs": books.jobs_of(found.rows),
        "sizes": cuts.PAGE_SIZES,
        "books": money_words.BOOKS.items(),
        "kinds": [(kind, _kind_word(wanted, kind)) for kind in kinds],
        "supplies": Supply.objects.order_by("slug").values_list("slug", flat=True)[:_SUPPLIES_SHOWN]
        if wanted.book == books.PROVIDERS
        else (),
        "active": _active(request, wanted, days),
        "keep": query_without(request.GET),
    }
    return page(request, "console/books/ledger.html", context, now)


@require_safe
@requires("read")
@in_reporting_zone
def ledger_totals(request: HttpRequest) -> HttpResponse:
    """The sums of the same filter: a panel of the ledger, or a page of its own."""
    now = timezone.now()
    wanted, days = books.parse_filter(request.GET), parse_days(request.GET, now, reporting_zone())
    context = {
        "wanted": wanted,
        "days": days,
        "totals": book_totals.totals(wanted, days),
        "active": _active(request, wanted, days),
    }
    return page(request, "console/books/totals.html", context, now)


@require_safe
@requires("read")
@in_reporting_zone
def ledger_csv(request: HttpRequest) -> HttpResponseBase:
    wanted = books.parse_filter(request.GET)
    days = parse_days(request.GET, timezone.now(), reporting_zone())
    name = f"ledger-{wanted.book}-{days.first}-{days.last}.csv"
    return csv_response(name, _HEADS, _exported(wanted, days))


def _exported(wanted: BookFilter, days: Days) -> Iterator[Sequence[Cell]]:
    # The rows are made after the view has ended: they name their zone themselves.
    for rows in batched(books.every_line(wanted, days), _BATCH):
        jobs = books.jobs_of(rows)
        with timezone.override(days.zone):
            made = [_row(wanted, row, jobs.get(getattr(row, "attempt", ""), "")) for row in rows]
        yield from made


def _row(wanted: BookFilter, row: Line, job: str) -> Sequence[Cell]:
    start = (row.pk, *both_times(row.at), wanted.book, str(row.kind))
    amount = (Decimal(written(row.amount_micros)), row.currency)
    if isinstance(row, CreditEntry):
        return (*start, row.customer.name, row.job, "", "", *amount, "", "", row.note)
    version = row.cost_rule_version.public_id if row.cost_rule_version else ""
    loss = "yes" if row.platform_loss else "no"
    return (*start, "", job, row.attempt, row.supply.slug, *amount, loss, version, "")


def _kind_word(wanted: BookFilter, kind: str) -> str:
    family = words.CREDIT_KINDS if wanted.book == books.CUSTOMERS else words.USAGE_KINDS
    return words.word(family, kind)


def _active(request: HttpRequest, wanted: BookFilter, days: Days) -> list[Word]:
    customer = Customer.objects.filter(public_id=wanted.customer).first() if wanted.customer else None
    told = (
        ("customer", customer.name if customer else wanted.customer),
        ("job", wanted.job),
        ("attempt", wanted.attempt),
        ("supply", wanted.supply),
        ("kind", _kind_word(wanted, wanted.kind) if wanted.kind else ""),
    )
    found = [(text, query_without(request.GET, name)) for name, text in told if text]
    if not days.is_usual:
        said = _("%(days)s, %(zone)s") % {"days": money_words.days_said(days), "zone": str(days.zone)}
        found.insert(0, (said, query_without(request.GET, "from", "to")))
    return found
