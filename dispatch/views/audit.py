"""The audit: who changed what, when, from where, and what it was before and after."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from billing.models import ApiKey
from catalog.models import AuditEntry, Channel, PublicModel, Supply
from dispatch.models import Attempt
from dispatch.queries import audit_list, cuts
from dispatch.queries.audit_list import AuditFilter
from dispatch.queries.cuts import Cursor
from dispatch.queries.days import Days, parse_days
from dispatch.views import money_words
from dispatch.views import vocabulary as words
from dispatch.views.access import requires
from dispatch.views.exports import TIME_HEADS, Cell, both_times, csv_response
from dispatch.views.listing import Word, query_without
from dispatch.views.rows import rows_on_screen
from dispatch.views.shell import is_beat, page
from dispatch.views.zones import reporting_zone

_HEADS: Final = (
    *("entry", *TIME_HEADS, "actor", "source", "action", "subject"),
    *("before", "after", "request_id"),
)
_PAGES: Final = {"alert": "alert", "customer": "customer", "job": "job", "refusal": "refusal"}
_PLACES: Final = {"capacity_group": "capacity", "group": "capacity", "health_policy": "settings"}


@require_safe
@requires("read")
def audit(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    wanted, cursor = audit_list.parse_filter(request.GET), cuts.parse_cursor(request.GET)
    days = parse_days(request.GET, now, timezone.get_current_timezone())
    if is_beat(request):
        context = _beat(request, wanted, days, cursor)
    else:
        context = _whole(request, wanted, days, cursor)
    return page(request, "console/audit/list.html", context, now)


def _whole(request: HttpRequest, wanted: AuditFilter, days: Days, cursor: Cursor) -> Mapping[str, Any]:
    found = cuts.cut(audit_list.matching(wanted, days), cursor)
    return {
        "wanted": wanted,
        "days": days,
        "cursor": cursor,
        "cut": found,
        "entries": found.rows,
        "lines": audit_list.lines_of(found.rows),
        "sizes": cuts.PAGE_SIZES,
        "actors": audit_list.actors(days),
        "actions": sorted(money_words.ACTIONS.items(), key=lambda each: str(each[1])),
        "kinds": sorted(_kinds(), key=lambda each: str(each[1])),
        "active": _active(request, wanted, days),
        "keep": query_without(request.GET),
    }


def _kinds() -> Iterator[tuple[str, object]]:
    """Each under the name that it has now."""
    kinds = money_words.SUBJECT_KINDS.items()
    return ((code, text) for code, text in kinds if code not in audit_list.OLD_KINDS)


def _beat(request: HttpRequest, wanted: AuditFilter, days: Days, cursor: Cursor) -> Mapping[str, Any]:
    entries = audit_list.entries_again(rows_on_screen(request))
    on_top = bool(entries) and cursor.is_on_top
    came = cuts.arrived(audit_list.matching(wanted, days), entries[0].pk, cursor) if on_top else 0
    return {"entries": entries, "lines": audit_list.lines_of(entries), "arrived": came}


@require_safe
@requires("read")
def audit_entry(request: HttpRequest, number: int) -> HttpResponse:
    found = AuditEntry.objects.filter(pk=number).first()
    if found is None:
        raise Http404
    name = audit_list.names_of([found]).get(found.subject, "")
    context = {"entry": found, "shown_at": address_of(found.subject), "name": name}
    return page(request, "console/audit/entry.html", context, timezone.now())


@require_safe
@requires("read")
def audit_csv(request: HttpRequest) -> HttpResponseBase:
    wanted = audit_list.parse_filter(request.GET)
    days = parse_days(request.GET, timezone.now(), timezone.get_current_timezone())
    return csv_response(f"audit-{days.first}-{days.last}.csv", _HEADS, _exported(wanted, days))


def _exported(wanted: AuditFilter, days: Days) -> Iterator[Sequence[Cell]]:
    zone = reporting_zone()
    for entry in audit_list.every_entry(wanted, days):
        with timezone.override(zone):
            times = both_times(entry.at)
        told = (entry.actor, entry.source, entry.action, entry.subject)
        yield (entry.pk, *times, *told, _json(entry.before), _json(entry.after), entry.request_id)


def _json(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _active(request: HttpRequest, wanted: AuditFilter, days: Days) -> list[Word]:
    kind = wanted.subject if ":" in wanted.subject else words.word(money_words.SUBJECT_KINDS, wanted.subject)
    told = (
        ("actor", wanted.actor),
        ("action", words.word(money_words.ACTIONS, wanted.action)),
        ("subject", kind),
        ("request", wanted.request),
    )
    found = [(text, query_without(request.GET, name)) for name, text in told if text]
    if not days.is_usual:
        found.insert(0, (money_words.days_said(days), query_without(request.GET, "from", "to")))
    return found


def address_of(subject: str) -> str:
    """The page that shows the subject of an entry, or "" where there is none."""
    kind, _colon, public_id = subject.partition(":")
    if kind in _PAGES and public_id:
        return reverse(_PAGES[kind], args=[public_id])
    if kind in _PLACES:
        return reverse(_PLACES[kind])
    if kind in _BY_ROW:
        return _BY_ROW[kind](public_id)
    return ""


def _model(public_id: str) -> str:
    slug = PublicModel.objects.filter(public_id=public_id).values_list("slug", flat=True).first()
    return reverse("model", args=[slug]) if slug else ""


def _supply(public_id: str) -> str:
    slug = Supply.objects.filter(public_id=public_id).values_list("slug", flat=True).first()
    return reverse("supply", args=[slug]) if slug else ""


def _channel(public_id: str) -> str:
    slug = Channel.objects.filter(public_id=public_id).values_list("slug", flat=True).first()
    return reverse("channel", args=[slug]) if slug else ""


def _attempt(public_id: str) -> str:
    job = Attempt.objects.filter(public_id=public_id).values_list("job__public_id", flat=True).first()
    return f"{reverse('job', args=[job])}#{public_id}" if job else ""


def _api_key(public_id: str) -> str:
    customer = (
        ApiKey.objects.filter(public_id=public_id).values_list("customer__public_id", flat=True).first()
    )
    return f"{reverse('customer', args=[customer])}#{public_id}" if customer else ""


_BY_ROW: Final = {
    "api_key": _api_key,
    "model": _model,
    "supply": _supply,
    "channel": _channel,
    "attempt": _attempt,
}
