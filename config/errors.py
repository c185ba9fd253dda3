"""Answers to errors that no view made: pages for people, problems (RFC 9457) for callers of the API."""

from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseServerError, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.defaults import page_not_found

from dispatch.problems import problem_as_json
from dispatch.views.shell import theme_of

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that can't be read: too large, forged, or with a character that can't be stored."""
    if not _is_for_api(request):
        return render(request, "400.html", status=HTTPStatus.BAD_REQUEST)
    if isinstance(exception, RequestDataTooBig):
        detail = f"A body takes at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."
        return _problem(request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", detail)
    detail = "This request can't be read: it has too many fields, or U+0000 in its address."
    return _problem(request, HTTPStatus.BAD_REQUEST, "invalid_request", detail)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """An address that leads nowhere."""
    if _is_for_api(request):
        detail = "This address leads nowhere. /api/schema/ lists those that there are."
        return _problem(request, HTTPStatus.NOT_FOUND, "not_found", detail)
    return page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """What nobody foresaw: it says by which reference the log tells of it. The page does without a context
    processor, a query or a file of the manifest: any of them may be what failed."""
    if _is_for_api(request):
        detail = "This request failed in a way that nobody foresaw; the log tells of it by its request_id."
        return _problem(request, HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", detail)
    context = {"reference": getattr(request, "request_id", ""), "theme": theme_of(request)}
    return HttpResponseServerError(render_to_string("500.html", context))


def _is_for_api(request: HttpRequest) -> bool:
    return request.path.startswith(_API)


def _problem(request: HttpRequest, status: HTTPStatus, code: str, detail: str) -> JsonResponse:
    body = problem_as_json(status, code, detail, getattr(request, "request_id", ""))
    return JsonResponse(body, status=status, content_type="application/problem+json")
