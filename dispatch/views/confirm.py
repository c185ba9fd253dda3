"""A step that changes traffic or money is confirmed on a page of its own: its form carries a signed token.

The token names who confirms what, at which version; it also is the form's key, so that the form has its
effect once however often it is sent."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

FIELD: Final = "confirm"
LASTS: Final = timedelta(hours=12)
_SALT: Final = "console.confirm"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """`version` is the one that the person looked at; `key` is the form's own."""

    version: int
    key: str


def confirm_token(request: HttpRequest, action: str, subject: str, version: int = 0) -> str:
    """For a hidden field named FIELD."""
    who = request.user.get_username()
    return signing.dumps([who, action, subject, version, uuid4().hex], salt=_SALT, compress=True)


def confirmed(request: HttpRequest, action: str, subject: str) -> Confirmed:
    """What the posted token says. Raises PermissionDenied for a form that did not come from the page that
    confirms this action on this subject for this person, or that is too old."""
    try:
        told: Any = signing.loads(request.POST.get(FIELD, ""), salt=_SALT, max_age=LASTS)
    except signing.BadSignature as error:
        raise PermissionDenied("unconfirmed") from error
    who, of_action, of_subject, version, key = told
    if (who, of_action, of_subject) != (request.user.get_username(), action, subject):
        raise PermissionDenied("unconfirmed")
    return Confirmed(version, key)
