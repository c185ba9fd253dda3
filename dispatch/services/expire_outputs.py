"""Removes delivered files whose time is over; their rows stay and say what they were."""

import logging
from datetime import datetime

from django.conf import settings

from dispatch.models import Asset
from dispatch.outputs.storage import MediaStore

logger = logging.getLogger(__name__)
BATCH = 500


def expire_outputs(now: datetime) -> int:
    """How many files went. The file goes first: a worker that dies in between finds it gone, and goes on.

    One that can't be removed keeps no other from going, and is tried again the next time; raises the last
    such OSError when all were tried."""
    store = MediaStore(settings.MEDIA_DIR)
    over = Asset.objects.filter(kind=Asset.Kind.OUTPUT, removed_at=None, expires_at__lte=now)
    gone, failure = [], None
    for asset in over.order_by("expires_at")[:BATCH]:
        try:
            store.remove(asset.path)
            gone.append(asset.pk)
        except OSError as error:
            logger.warning("A file can't be removed", exc_info=True, extra={"asset": asset.public_id})
            failure = error
    Asset.objects.filter(pk__in=gone).update(removed_at=now)
    if failure is not None:
        raise failure
    return len(gone)
