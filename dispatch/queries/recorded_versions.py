"""The immutable documents that a recorded selection was routed by, to route it again."""

from collections.abc import Mapping
from typing import Any

from billing.models import CostRuleVersion
from catalog.models import CapabilityVersion, DispatchPolicy


def recorded_documents(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """By public id; one that is gone is left out, and the replay will name it."""
    supplies = snapshot["supplies"].values()
    capabilities = [supply["capability"][0] for supply in supplies]
    prices = [supply["price"][0] for supply in supplies if supply["price"]]
    policy = snapshot["policy"]["version"][0]
    return {
        **dict(
            CapabilityVersion.objects.filter(public_id__in=capabilities).values_list("public_id", "document")
        ),
        **dict(CostRuleVersion.objects.filter(public_id__in=prices).values_list("public_id", "document")),
        **dict(DispatchPolicy.objects.filter(public_id=policy).values_list("public_id", "parameters")),
    }
