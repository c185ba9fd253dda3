"""Saved views of lists: a name for a query string, private or shared."""

from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dispatch.queries.saved_views import PAGES
from dispatch.services.save_view import MOST_VIEWS, TooManyViews, forget_view, save_view
from dispatch.views.access import person, requires
from dispatch.views.bulk import filter_of

NAME_LENGTH: Final = 60
_QUERY_LENGTH: Final = 600


@require_POST
@requires("read")
def save(request: HttpRequest) -> HttpResponse:
    """Returns to the list as it is shown, whatever came of it."""
    page, name = request.POST.get("page", ""), request.POST.get("name", "").strip()[:NAME_LENGTH]
    if page not in PAGES:
        raise Http404
    query = filter_of(QueryDict(request.POST.get("query", "")))
    messages.info(request, _kept(request, page, name, query))
    return redirect(f"{reverse(page)}?{query}" if query else reverse(page))


def _kept(request: HttpRequest, page: str, name: str, query: str) -> str:
    if not name:
        return _("A view needs a name: nothing was saved.")
    if len(query) > _QUERY_LENGTH:
        return _("This filter is too long for a view: nothing was saved.")
    is_shared = request.POST.get("shared") == "1"
    try:
        save_view(person(request), page, name, query, timezone.now(), is_shared=is_shared)
    except TooManyViews:
        told = _("You have %(n)s views of this list: forget one first. Nothing was saved.")
        return told % {"n": MOST_VIEWS}
    return _("Saved as “%(name)s”.") % {"name": name}


@require_POST
@requires("read")
def forget(request: HttpRequest, view_id: str) -> HttpResponse:
    view = forget_view(person(request), view_id)
    if view is None:
        messages.info(request, _("This view is gone already."))
        return redirect("overview")
    messages.info(request, _("“%(name)s” is forgotten.") % {"name": view.name})
    return redirect(f"{reverse(view.page)}?{view.query}" if view.query else reverse(view.page))
