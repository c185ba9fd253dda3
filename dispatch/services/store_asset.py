"""Keeps a customer's uploaded file: proved to be what it is, once for each checksum."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from billing.models import Customer
from dispatch.errors import AssetInvalid
from dispatch.models import Asset
from dispatch.outputs.fetching import Fetched
from dispatch.outputs.limits import MediaLimits
from dispatch.outputs.media import HEAD_BYTES, Invalid, Verified, sniff, verify
from dispatch.outputs.storage import MediaStore, Stored, input_name


def store_asset(customer: Customer, part: Fetched, now: datetime) -> tuple[Asset, bool]:
    """The asset, and whether it is new; `part` is moved to its place, or removed. The same bytes again bring
    back a file that was lost.

    Raises AssetInvalid, and OSError for trouble of our own disk."""
    try:
        store = MediaStore(settings.MEDIA_DIR)
        earlier = _inputs_of(customer).filter(sha256=part.sha256).first()
        if earlier is not None and store.path(earlier.path).is_file():
            return earlier, False
        media = _proved(part)
        stored = store.place(part.path, input_name(customer.pk, part.sha256), part.sha256)
    finally:
        part.path.unlink(missing_ok=True)
    return _recorded(customer, stored, media, now)


def _inputs_of(customer: Customer) -> QuerySet[Asset]:
    return Asset.objects.filter(customer=customer, kind=Asset.Kind.INPUT)


def _proved(part: Fetched) -> Verified:
    with part.path.open("rb") as file:
        sniffed = sniff(file.read(HEAD_BYTES))
    if sniffed is None:
        raise AssetInvalid("not_media")
    media = verify(part.path, sniffed.kind, MediaLimits(wall_s=settings.OUTPUT_VERIFY_TIMEOUT_S))
    if isinstance(media, Invalid):
        raise AssetInvalid(media.reason)
    return media


def _recorded(customer: Customer, stored: Stored, media: Verified, now: datetime) -> tuple[Asset, bool]:
    """Two uploads of the same bytes at once make one row: the constraint decides, and the other is told."""
    facts = {
        "content_type": media.content_type,
        "size_bytes": stored.size_bytes,
        "width": media.width,
        "height": media.height,
        "duration_ms": media.duration_ms,
        "path": stored.name,
        "created_at": now,
    }
    with transaction.atomic():
        return Asset.objects.get_or_create(
            customer=customer, kind=Asset.Kind.INPUT, sha256=stored.sha256, defaults=facts
        )
