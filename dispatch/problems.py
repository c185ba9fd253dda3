"""What went wrong, in the one shape of the native API (RFC 9457)."""

from http import HTTPStatus
from typing import Any


def problem_as_json(status: int, code: str, detail: str, request_id: str, **more: str) -> dict[str, Any]:
    """`more`: what else the caller can use, such as the `field` or the `job`; empty values are left out."""
    body = {
        "type": f"urn:frameyard:error:{code}",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
        "request_id": request_id,
    }
    return body | {name: value for name, value in more.items() if value}
