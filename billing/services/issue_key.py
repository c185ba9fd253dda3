"""A new API key, or one whose secret is already known."""

from datetime import datetime

from billing.keys import SCOPES, NewKey, is_well_formed, key_from_secret, new_key
from billing.models import ApiKey, Customer


def issue_key(
    customer: Customer,
    *,
    name: str = "",
    scopes: tuple[str, ...] = SCOPES,
    expires_at: datetime | None = None,
    secret: str | None = None,
) -> tuple[ApiKey, NewKey]:
    """The stored row, and the key with its secret, to be shown once. Raises ValueError for a scope or a
    secret that cannot be a key's."""
    if not set(scopes) <= set(SCOPES):
        raise ValueError(f"scopes are {', '.join(SCOPES)}")
    if secret is not None and not is_well_formed(secret):
        raise ValueError("this secret is not a key that Frameyard made")
    key = key_from_secret(secret) if secret else new_key()
    row, _ = ApiKey.objects.get_or_create(
        hash=key.hash,
        defaults={
            "customer": customer,
            "name": name,
            "prefix": key.prefix,
            "last_four": key.last_four,
            "scopes": list(scopes),
            "expires_at": expires_at,
        },
    )
    return row, key
