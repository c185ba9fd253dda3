"""Removes what workers that died left unfinished in the store of outputs."""

from datetime import datetime, timedelta

from django.conf import settings

from dispatch.outputs.storage import MediaStore

KEPT_FOR = timedelta(days=1)  # longer than any transfer lasts


def sweep_incoming(now: datetime) -> int:
    """How many parts were removed."""
    return MediaStore(settings.MEDIA_DIR).sweep_incoming((now - KEPT_FOR).timestamp())
