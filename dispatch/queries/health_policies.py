"""The parameters of circuits: the installation's, and those of channels and supplies that differ."""

from collections.abc import Sequence
from typing import Final

from health.models import HealthPolicy

MOST: Final = 500  # that differ


def own_policy() -> HealthPolicy | None:
    """The installation's; None while it is as delivered."""
    return HealthPolicy.objects.filter(channel=None, supply=None).order_by("-version").first()


def differing_policies() -> Sequence[HealthPolicy]:
    """The newest of each channel and supply that sets any parameter, by their names; at most MOST."""
    newest = HealthPolicy.objects.order_by("channel", "supply", "-version").distinct("channel", "supply")
    of_one = HealthPolicy.objects.filter(pk__in=newest.values("pk")).exclude(channel=None, supply=None)
    differing = of_one.exclude(parameters={}).select_related("channel", "supply")
    return list(differing.order_by("channel__slug", "supply__slug")[:MOST])
