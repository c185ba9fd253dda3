"""The page of an error that nobody foresaw: it says by which reference the log tells of it."""

from django.http import HttpRequest, HttpResponseServerError
from django.template.loader import render_to_string

from dispatch.views.shell import theme_of


def server_error(request: HttpRequest) -> HttpResponseServerError:
    """Without a context processor, a query or a file of the manifest: any of them may be what failed."""
    context = {"reference": getattr(request, "request_id", ""), "theme": theme_of(request)}
    return HttpResponseServerError(render_to_string("500.html", context))
