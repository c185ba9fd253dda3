"""Every revision of a public model as it was saved: compare any two, bring any of them back."""

from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.exceptions import CatalogueError, StaleRevision
from catalog.models import ModelRevision, PublicModel
from dispatch.queries.drafts import Version, kept_version
from dispatch.queries.publication_watches import by_revision
from dispatch.queries.revisions import revision_lines
from dispatch.services.answer_once import answer_once
from dispatch.services.publish import GateReport
from dispatch.services.revert_model import revert_model
from dispatch.templatetags.console import clock_text
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.differences import changed_fields, differences
from dispatch.views.models import find_model, last_change
from dispatch.views.review import failing_first

REVERT: Final = "revert"


@require_safe
@requires("read")
def revisions(request: HttpRequest, slug: str) -> HttpResponse:
    row = find_model(slug)
    older, newer = (request.GET.get(name, "") for name in ("older", "newer"))
    if older.isdecimal() and newer.isdecimal():
        return redirect("difference", slug, int(older), int(newer))
    context = {
        "model": row,
        "lines": revision_lines(row),
        "watches": by_revision(row),
        "last_change": last_change(row),
    }
    return render(request, "console/models/revisions.html", context)


@require_safe
@requires("read")
def difference(request: HttpRequest, slug: str, older: int, newer: int) -> HttpResponse:
    return _difference_page(request, slug, older, newer)


@require_POST
@requires("publish")
def revert(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Makes a new revision equal to `number` and publishes it, or changes nothing."""
    row = find_model(slug)
    form = confirmed(request, REVERT, f"{slug} {number}")
    actor, now = actor_of(request), timezone.now()
    shut: list[GateReport] = []

    def bring_back() -> str | None:
        result = revert_model(row, number, expected_revision=form.version, actor=actor, now=now)
        if isinstance(result, GateReport):
            shut.append(result)
            return None
        said = _("Revision %(old)s is back as revision %(n)s, published at %(time)s.")
        told = {"old": number, "n": result.model.revision, "time": clock_text(now)}
        messages.info(request, said % told)
        return reverse("model", args=[slug])

    try:
        went_to = answer_once(form.key, actor.name, now, bring_back)
    except ModelRevision.DoesNotExist as error:
        raise Http404 from error
    except StaleRevision:
        messages.info(request, _("Somebody saved a revision meanwhile. Nothing was changed: look again."))
        return redirect("difference", slug, number, find_model(slug).revision)
    except CatalogueError as error:
        return _difference_page(request, slug, number, row.revision, str(error), status=422)
    if went_to is None:
        return _difference_page(request, slug, number, row.revision, report=shut[0], status=422)
    return redirect(went_to)


def _difference_page(
    request: HttpRequest,
    slug: str,
    older: int,
    newer: int,
    refused: str = "",
    report: GateReport | None = None,
    status: int = 200,
) -> HttpResponse:
    row = find_model(slug)
    one, other = _kept(row, older), _kept(row, newer)
    saved = {each.number: each for each in row.revisions.filter(number__in=(older, newer)).defer("document")}
    context = {
        "model": row,
        "older": saved[older],
        "newer": saved[newer],
        "differences": differences(one.fields, changed_fields(one.fields, other.fields)),
        "token": confirm_token(request, REVERT, f"{slug} {older}", row.revision),
        "refused": refused,
        "gates": failing_first(report.gates) if report else [],
        "failed": report.failed if report else [],
        "last_change": last_change(row),
    }
    return render(request, "console/models/difference.html", context, status=status)


def _kept(row: PublicModel, number: int) -> Version:
    found = kept_version(row, number)
    if found is None:
        raise Http404
    return found
