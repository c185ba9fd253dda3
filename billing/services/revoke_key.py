"""An API key ends; its next request is refused."""

from datetime import datetime

from billing.models import ApiKey


def revoke_key(key: ApiKey, now: datetime) -> bool:
    """False where it had already been revoked: the first time stays."""
    return ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now) > 0
