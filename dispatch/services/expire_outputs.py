"""Removes delivered files whose time is over; their rows stay and say what they were."""

from datetime import datetime

from django.conf import settings

from dispatch.models import Asset
from dispatch.outputs.storage import MediaStore

BATCH = 500


def expire_outputs(now: datetime) -> int:
    """How many files went. The file goes first: a worker that dies in between finds it gone, and goes on."""
    store = MediaStore(settings.MEDIA_DIR)
    over = Asset.objects.filter(kind=Asset.Kind.OUTPUT, removed_at=None, expires_at__lte=now)
    assets = list(over.order_by("expires_at")[:BATCH])
    for asset in assets:
        store.remove(asset.path)
    return Asset.objects.filter(pk__in=[asset.pk for asset in assets]).update(removed_at=now)
