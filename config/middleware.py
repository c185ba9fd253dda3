"""What every request passes: its id; and what the console's pass besides, in a person's zone and packed."""

import re
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils import timezone

from catalog.ids import public_id
from dispatch.views.zones import personal_zone

GetResponse = Callable[[HttpRequest], HttpResponse]
_CONSOLE = "/console/"
_FORM = "application/x-www-form-urlencoded"
_NUL = re.compile(rb"\0|%00")
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9_.-]{8,64}\Z")


class RequestIdMiddleware:
    """Gives each request an id, the caller's own where it is well-formed, and answers with it."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request.request_id = given if _ACCEPTED_ID.match(given) else public_id("req")  # type: ignore[attr-defined]
        response = self.get_response(request)
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
        return response


class PersonalZoneMiddleware:
    """The console's times are in the zone that a person has chosen; pages of money choose their own."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        zone = personal_zone(request) if request.path.startswith(_CONSOLE) else None
        with timezone.override(zone):
            return self.get_response(request)


class NoNulMiddleware:
    """Refuses what says U+0000 in its address or in a form: PostgreSQL has no text with it, so that each
    question and each insert would fail. Bodies of JSON and of files are read by their own parsers."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_form = request.content_type == _FORM and request.path.startswith(_CONSOLE)
        said = request.META.get("QUERY_STRING", "").encode() + (request.body if is_form else b"")
        if "\0" in request.path or _NUL.search(said):
            raise BadRequest("U+0000 can't be stored")
        return self.get_response(request)


class ConsoleGZipMiddleware(GZipMiddleware):
    """Packs the console's pages alone. What a stranger could learn from their length is blurred: tokens are
    masked anew in each answer, and each answer is padded by a random length."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = request.path.startswith(_CONSOLE) and response.headers.get("Content-Type", "").startswith(
            "text/"
        )
        return super().process_response(request, response) if is_page else response


class SignedOutFragmentMiddleware:
    """A poll of somebody signed out would swap the whole login page into a panel: answer 401 instead."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        sent_to_login = response.status_code == 302 and response["Location"].startswith(
            str(settings.LOGIN_URL)
        )
        if request.headers.get("HX-Request") and sent_to_login:
            return HttpResponse(status=401)
        return response
