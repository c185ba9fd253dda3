"""How an uploaded file reaches a provider: by a signed address of ours, or inside the request.

Both are made at the moment of sending: a plan that waited for a slot is never sent with an old address."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from catalog.providers.types import AdapterCapabilities, CompilePlan
from dispatch.inputs.links import sign_link
from dispatch.inputs.references import references_in, stand_ins_in, with_addresses
from dispatch.models import Asset
from dispatch.outputs.ranges import suffix_of
from dispatch.outputs.storage import MediaStore

# Longer than a provider keeps a task waiting before it reads what it was given.
LINK_LASTS = timedelta(hours=72)


class InputLost(Exception):
    """A file that a job names is not in the store: nothing was sent."""


def undeliverable(request: Mapping[str, Any], adapter: AdapterCapabilities) -> tuple[str, ...]:
    """Why files of this request can't reach a provider of this adapter; empty where all can."""
    return tuple(
        f"{field}: this installation has no public address, and the provider takes no such file inline"
        for field, _, reference in references_in(request)
        if reference.get("asset") and not _way(reference["kind"], reference["size_bytes"], adapter)
    )


def with_inputs(
    plan: CompilePlan, customer_id: int, adapter: AdapterCapabilities, now: datetime
) -> CompilePlan:
    """The plan as it is sent. Raises InputLost."""
    wanted = stand_ins_in(plan.body)
    if not wanted:
        return plan
    assets = list(
        Asset.objects.filter(customer_id=customer_id, kind=Asset.Kind.INPUT, public_id__in=sorted(wanted))
    )
    if len(assets) < len(wanted):
        raise InputLost("an uploaded file has no row any more")
    addresses = dict(_addresses(assets, adapter, now))
    return replace(plan, body=with_addresses(plan.body, addresses))


def _addresses(
    assets: Iterable[Asset], adapter: AdapterCapabilities, now: datetime
) -> Iterable[tuple[str, str]]:
    for asset in assets:
        by_address = _way(kind_of(asset), asset.size_bytes, adapter) == "url"
        yield asset.public_id, _signed(asset, now) if by_address else _inline(asset)


def _way(kind: str, size_bytes: int, adapter: AdapterCapabilities) -> str | None:
    """`url` wherever we can be reached: a request stays small then."""
    ways = adapter.assets.get(kind, ())
    if "url" in ways and settings.PUBLIC_URL:
        return "url"
    return "inline" if "inline" in ways and size_bytes <= settings.ASSET_INLINE_MAX_BYTES else None


def _signed(asset: Asset, now: datetime) -> str:
    expires_at = int((now + LINK_LASTS).timestamp())
    path = sign_link(link_key(), asset.public_id, suffix_of(asset.content_type), expires_at)
    return f"{settings.PUBLIC_URL.rstrip('/')}{path}"


def _inline(asset: Asset) -> str:
    try:
        content = MediaStore(settings.MEDIA_DIR).path(asset.path).read_bytes()
    except OSError as error:
        raise InputLost(f"the file of {asset.public_id} can't be read: {error.strerror}") from error
    return f"data:{asset.content_type};base64,{base64.b64encode(content).decode()}"


def kind_of(asset: Asset) -> str:
    """image, video or audio."""
    return asset.content_type.partition("/")[0]


def link_key() -> bytes:
    return settings.SECRET_KEY.encode()
