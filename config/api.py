"""Errors of the customer API in one shape (RFC 9457), and the two doors that say whether we live."""

import logging
from http import HTTPStatus
from typing import Any

from django.db import Error, OperationalError, connection
from django.http import HttpRequest, JsonResponse
from django.utils.http import http_date
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from billing.errors import BillingError, InsufficientCredit
from dispatch import errors
from dispatch.problems import problem_as_json
from dispatch.services.count_refused import count_refused

logger = logging.getLogger(__name__)

STATUS_OF: dict[type[Exception], HTTPStatus] = {
    errors.InvalidRequest: HTTPStatus.BAD_REQUEST,
    errors.CostOverLimit: HTTPStatus.BAD_REQUEST,
    errors.UnknownModel: HTTPStatus.NOT_FOUND,
    errors.UnknownJob: HTTPStatus.NOT_FOUND,
    errors.UnknownAsset: HTTPStatus.NOT_FOUND,
    errors.UnknownReference: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.AssetInvalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.AssetTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.ModelNotPublished: HTTPStatus.CONFLICT,
    errors.IdempotencyConflict: HTTPStatus.CONFLICT,
    errors.AlreadyFinished: HTTPStatus.CONFLICT,
    errors.OutputExpired: HTTPStatus.GONE,
    errors.ContentRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.QueueFull: HTTPStatus.TOO_MANY_REQUESTS,
    errors.NoCapacity: HTTPStatus.TOO_MANY_REQUESTS,
    errors.NothingAvailable: HTTPStatus.SERVICE_UNAVAILABLE,
    InsufficientCredit: HTTPStatus.PAYMENT_REQUIRED,
}
_CODE_OF_STATUS = {
    400: "invalid_request",
    401: "not_authenticated",
    403: "permission_denied",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "body_too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    503: "temporarily_unavailable",
}
_TRY_AGAIN_S = 2


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an error raised in a view; None (a plain 500) for what nobody foresaw."""
    request_id = getattr(context["request"], "request_id", "")
    if isinstance(error, errors.DispatchError | BillingError):
        set_rollback()
        if isinstance(error, errors.ModelNotPublished):
            count_refused(str(context["request"].data.get("model", "")))
        return _from_ours(error, request_id)
    if isinstance(error, OperationalError):
        # No connection left, restart, disk full: nothing was written, and the caller may try again.
        set_rollback()
        logger.error("The database did not answer a customer's request", exc_info=error)
        response = _problem(
            503, "temporarily_unavailable", "Nothing was accepted. Try again shortly.", request_id
        )
        response["Retry-After"] = str(_TRY_AGAIN_S)
        return response
    answer = exception_handler(error, context)
    return None if answer is None else _from_framework(error, answer, request_id)


def _from_ours(error: errors.DispatchError | BillingError, request_id: str) -> Response:
    status = next(status for kind, status in STATUS_OF.items() if isinstance(error, kind))
    response = _problem(status, error.code, str(error), request_id, getattr(error, "field", ""))
    if isinstance(error, errors.TryLater):
        response["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.ContentRefused) and error.next_at is not None:
        response["Retry-After"] = http_date(error.next_at.timestamp())
    return response


def _from_framework(error: Exception, response: Response, request_id: str) -> Response:
    field, detail = ("", str(getattr(error, "detail", error)))
    if isinstance(error, ValidationError):
        field, detail = _first_message(error.detail)
    code = _CODE_OF_STATUS.get(response.status_code, "error")
    problem = _problem(response.status_code, code, detail, request_id, field)
    for header in ("WWW-Authenticate", "Retry-After", "Allow"):
        if response.has_header(header):
            problem[header] = response[header]
    return problem


def _first_message(detail: Any, path: str = "") -> tuple[str, str]:
    """The first complaint of nested validation errors, with its path."""
    if isinstance(detail, dict) and detail:
        name, inner = next(iter(detail.items()))
        separator = "." if path else ""
        return _first_message(inner, path if name == "non_field_errors" else f"{path}{separator}{name}")
    if isinstance(detail, list) and detail:
        index = next((number for number, inner in enumerate(detail) if inner), 0)
        inner = detail[index]
        return _first_message(inner, f"{path}[{index}]" if isinstance(inner, dict | list) else path)
    return path, str(detail)


def _problem(status: int, code: str, detail: str, request_id: str, field: str = "") -> Response:
    body = problem_as_json(status, code, detail, request_id, field=field)
    return Response(body, status=status, content_type="application/problem+json")


def live(_request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "live"})


def ready(_request: HttpRequest) -> JsonResponse:
    """The process can work: its database answers."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return JsonResponse({"status": "database unreachable"}, status=503)
    return JsonResponse({"status": "ready"})
