"""From the ids of uploaded files in a request to what a job keeps of them."""

from collections.abc import Mapping
from typing import Any

from billing.models import Customer
from dispatch.errors import InvalidRequest, UnknownReference
from dispatch.inputs.delivery import kind_of
from dispatch.inputs.references import references_in, stand_in, with_references
from dispatch.models import Asset


def resolved(body: Mapping[str, Any], customer: Customer) -> dict[str, Any]:
    """The request with its assets named in full. Another customer's file is as unknown as none.

    Raises UnknownReference, and InvalidRequest for a file of a kind that does not belong in its field."""
    named = [(field, kind, each["asset"]) for field, kind, each in references_in(body) if "asset" in each]
    if not named:
        return dict(body)
    ids = {asset_id for _, _, asset_id in named}
    rows = Asset.objects.filter(customer=customer, kind=Asset.Kind.INPUT, public_id__in=sorted(ids))
    known = {row.public_id: _reference(row) for row in rows}
    for field, kind, asset_id in named:
        if asset_id not in known:
            raise UnknownReference(f"There is no asset {asset_id} in this account.", field)
        if known[asset_id]["kind"] != kind:
            raise InvalidRequest(f"{asset_id} is {known[asset_id]['kind']}, not {kind}.", field)
    return with_references(body, known)


def _reference(asset: Asset) -> dict[str, Any]:
    return {
        "asset": asset.public_id,
        "kind": kind_of(asset),
        "size_bytes": asset.size_bytes,
        "sha256": asset.sha256,
        "url": stand_in(asset.public_id),
    }
