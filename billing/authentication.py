"""Who calls the customer API: a bearer key, checked at every request; revocation works at the next."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from billing.keys import hash_of, is_well_formed
from billing.models import ApiKey, Customer, CustomerGroup
from catalog.rows import first_row

_KEY = """
FROM billing_apikey AS api_key JOIN billing_customer AS customer ON customer.id = api_key.customer_id
LEFT JOIN billing_customergroup AS customer_group ON customer_group.id = customer.group_id
WHERE api_key.hash = %s"""
_TABLES: Mapping[str, type[Model]] = {
    "api_key": ApiKey,
    "customer": Customer,
    "customer_group": CustomerGroup,
}
_LAST_USED_RESOLUTION = timedelta(minutes=1)  # a write a request would cost more than the fact is worth


@dataclass(frozen=True)
class Caller:
    """The `request.user` of the customer API."""

    customer: Customer
    key: ApiKey

    is_authenticated = True

    @property
    def pk(self) -> int:
        return self.customer.pk


def is_usable(key: ApiKey, now: datetime) -> bool:
    """Whether a key still opens the door: neither revoked nor expired, its customer active."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now) and key.customer.active


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer fy_live_…`."""

    def authenticate(self, request: Request) -> tuple[Caller, ApiKey] | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        now = timezone.now()
        key = self._key(secret.strip())
        if key is None or not is_usable(key, now) or not _address_allowed(key, request):
            raise AuthenticationFailed(
                "This API key does not exist, has ended, or may not be used from here."
            )
        if key.last_used_at is None or now - key.last_used_at > _LAST_USED_RESOLUTION:
            _note_use(key, now)
        return Caller(key.customer, key), key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="frameyard"'

    def _key(self, secret: str) -> ApiKey | None:
        if not is_well_formed(secret):
            return None
        found = first_row(_KEY, [hash_of(secret)], **_TABLES)
        if found is None:
            return None
        key, customer, group = found
        key.customer, customer.group = customer, group
        return key  # type: ignore[no-any-return]


def _note_use(key: ApiKey, now: datetime) -> None:
    """Waits for nobody: whoever holds the row notes the same, or is an operator, who goes first."""
    free = ApiKey.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=key.pk)
    with transaction.atomic(savepoint=False):
        ApiKey.objects.filter(pk__in=free.values("pk")).update(last_used_at=now)


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document describes it."""

    target_class = ApiKeyAuthentication
    name = "ApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "fy_live_…"}


def _address_allowed(key: ApiKey, request: Request) -> bool:
    if not key.allowed_addresses:
        return True
    address = ipaddress.ip_address(request.META["REMOTE_ADDR"])
    return any(address in ipaddress.ip_network(network) for network in key.allowed_addresses)


def caller_of(request: Request) -> Caller:
    """The customer behind a request that passed authentication. Raises AuthenticationFailed otherwise."""
    if not isinstance(request.user, Caller):
        raise AuthenticationFailed("Send an API key.")
    return request.user


def scope_required(scope: str) -> type[BasePermission]:
    """A permission class: the key must carry `scope`."""

    class HasScope(BasePermission):
        message = f"This API key lacks the scope {scope!r}."

        def has_permission(self, request: Request, view: Any) -> bool:
            return isinstance(request.user, Caller) and scope in request.user.key.scopes

    return HasScope
