"""What the public models lose when supplies are taken out."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import Q

from catalog.models import SupplyBinding
from dispatch.queries.fullness import peaks_of_supplies
from dispatch.queries.model_list import is_usable
from dispatch.redundancy import Bound, Loss, losses


def impact_of(supplies: Collection[str], now: datetime) -> list[Loss]:
    """`supplies` by slug. Two queries. Drafts are left out: nobody asks for them yet."""
    rows = SupplyBinding.objects.filter(
        Q(public_model__enabled=True) | Q(public_model__published_revision__isnull=False), enabled=True
    ).select_related("public_model", "supply__health", "supply__channel__health", "degradation_rule")
    peaks = peaks_of_supplies(now)
    return losses((_bound(row, peaks, now) for row in rows), supplies)


def _bound(row: SupplyBinding, peaks: Mapping[int, int], now: datetime) -> Bound:
    return Bound(
        model=row.public_model.slug,
        tier=row.tier,
        supply=row.supply.slug,
        is_usable=is_usable(row, now),
        slots=row.supply.concurrency,
        peak=peaks.get(row.supply_id, 0),
    )
