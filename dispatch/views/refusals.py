"""Refusals: what providers refused on content grounds, whom it stops, and the lifting of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dispatch.queries import cuts, refusal_list
from dispatch.queries.cuts import Cursor
from dispatch.services.answer_once import answer_once
from dispatch.services.show_content import show_content
from dispatch.templatetags.console import clock_text
from dispatch.views import money_words
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.listing import Word, query_without
from dispatch.views.rows import rows_on_screen
from dispatch.views.shell import is_beat, page
from health.models import RefusalRecord
from health.refusals import FROZEN_AT_REFUSALS
from health.services.lift_refusal import lift_refusal

_LIFT: Final = "lift refusal"
WHY_LENGTH: Final = 300


@require_safe
@requires("read")
def refusals(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    wanted, cursor = refusal_list.parse_filter(request.GET), cuts.parse_cursor(request.GET)
    context = (
        _beat(request, wanted, cursor, now) if is_beat(request) else _whole(request, wanted, cursor, now)
    )
    return page(request, "console/refusals/list.html", context, now)


def _whole(
    request: HttpRequest, wanted: refusal_list.RefusalFilter, cursor: Cursor, now: datetime
) -> Mapping[str, Any]:
    found, rows = refusal_list.refusal_page(wanted, cursor, now)
    return {
        "wanted": wanted,
        "rows": rows,
        "lines": [row.line for row in rows],
        "cut": found,
        "cursor": cursor,
        "sizes": cuts.PAGE_SIZES,
        "states": [(state, money_words.REFUSAL_STATES[state]) for state in refusal_list.STATES],
        "providers": refusal_list.providers(),
        "active": _active(request, wanted),
        "keep": query_without(request.GET),
        "last": None if rows else refusal_list.last_ended(),
    }


def _beat(
    request: HttpRequest, wanted: refusal_list.RefusalFilter, cursor: Cursor, now: datetime
) -> Mapping[str, Any]:
    rows = refusal_list.rows_again(rows_on_screen(request), now)
    on_top = bool(rows) and cursor.is_on_top
    came = cuts.arrived(refusal_list.matching(wanted), rows[0].record.pk, cursor) if on_top else 0
    return {"rows": rows, "lines": [row.line for row in rows], "arrived": came}


def _active(request: HttpRequest, wanted: refusal_list.RefusalFilter) -> list[Word]:
    found = [
        (str(money_words.REFUSAL_STATES[state]), query_without(request.GET, value=("state", state)))
        for state in wanted.states
    ]
    if wanted.provider:
        found.append((wanted.provider, query_without(request.GET, "provider")))
    return found


@require_safe
@requires("read")
def refusal(request: HttpRequest, refusal_id: str) -> HttpResponse:
    return _page(request, _found(refusal_id), {})


@require_POST
@requires("read")
def refusal_content(request: HttpRequest, refusal_id: str) -> HttpResponse:
    """What the customer wrote."""
    row = _found(refusal_id)
    job = refusal_list.refused_job(row)
    if job is None:
        raise Http404
    written = show_content(job, actor=actor_of(request), now=timezone.now(), refusal=row)
    if is_beat(request):
        return render(request, "console/refusals/refusal.html#content", {"refusal": row, "content": written})
    return _page(request, row, {"content": written})


@require_POST
@requires("settle")
def lift(request: HttpRequest, refusal_id: str) -> HttpResponse:
    """The content may be sent there again: a reason is asked for."""
    row = _found(refusal_id)
    form = confirmed(request, _LIFT, row.public_id)
    why = request.POST.get("why", "").strip()[:WHY_LENGTH]
    actor, now = actor_of(request), timezone.now()
    if not why:
        return _page(request, row, {"faults": [("why", _("Say why. Nothing was changed."))]}, status=422)

    def lift_it() -> str:
        first = lift_refusal(row.pk, actor, why, now)
        said = _("Lifted at %(time)s: the content may be sent there again, and is counted anew.")
        messages.info(request, said % {"time": clock_text(now)} if first else _("It had ended already."))
        return reverse("refusal", args=[row.public_id])

    return redirect(answer_once(form.key, actor.name, now, lift_it) or reverse("refusals"))


def _page(
    request: HttpRequest, row: RefusalRecord, more: Mapping[str, Any], status: int = 200
) -> HttpResponse:
    now = timezone.now()
    (line,) = refusal_list.rows_of([row], now)
    jobs = refusal_list.jobs_of(row)
    context = {
        "as_of": now,
        "refusal": row,
        "line": line,
        "jobs": jobs,
        "supplies": refusal_list.supplies_of(row),
        "isolation": sorted({(job.public_model.slug, job.public_model.refusal_isolation) for job in jobs}),
        "frozen_at": FROZEN_AT_REFUSALS,
        "token": confirm_token(request, _LIFT, row.public_id),
        "why_length": WHY_LENGTH,
        "content": None,
        **more,
    }
    return render(request, "console/refusals/refusal.html", context, status=status)


def _found(refusal_id: str) -> RefusalRecord:
    found = RefusalRecord.objects.select_related("supply").filter(public_id=refusal_id).first()
    if found is None:
        raise Http404
    return found
