"""One box for every id: one hit opens, several are listed, none says so."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from dispatch.queries.search import find
from dispatch.views.access import requires


@require_safe
@requires("read")
def search(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:300]
    hits = find(text)
    if len(hits) == 1:
        return redirect(hits[0].url)
    return render(request, "console/search.html", {"q": text, "hits": hits})
