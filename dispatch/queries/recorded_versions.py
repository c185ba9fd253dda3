"""The immutable documents that recorded selections were routed by, to route them again."""

from collections.abc import Mapping
from typing import Any

from billing.models import CostRuleVersion
from catalog.models import CapabilityVersion, DispatchPolicy
from dispatch.routing.snapshot import SCHEMA


def recorded_documents(*snapshots: Mapping[str, Any]) -> dict[str, Any]:
    """By public id, in three queries; one that is gone is left out, and the replay will name it, as it
    names a snapshot in a form that this version does not read."""
    snapshots = tuple(each for each in snapshots if each.get("schema") == SCHEMA)
    supplies = [supply for snapshot in snapshots for supply in snapshot["supplies"].values()]
    capabilities = {supply["capability"][0] for supply in supplies}
    prices = {supply["price"][0] for supply in supplies if supply["price"]}
    policies = {snapshot["policy"]["version"][0] for snapshot in snapshots}
    return {
        **dict(
            CapabilityVersion.objects.filter(public_id__in=capabilities).values_list("public_id", "document")
        ),
        **dict(CostRuleVersion.objects.filter(public_id__in=prices).values_list("public_id", "document")),
        **dict(DispatchPolicy.objects.filter(public_id__in=policies).values_list("public_id", "parameters")),
    }
