"""What the public models lose when supplies are taken out."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Q

from catalog.models import SupplyBinding
from dispatch.queries.model_list import is_usable
from dispatch.redundancy import Bound, Loss, losses


def impact_of(supplies: Collection[str], now: datetime) -> list[Loss]:
    """`supplies` by slug. One query. Drafts are left out: nobody asks for them yet."""
    rows = SupplyBinding.objects.filter(
        Q(public_model__enabled=True) | Q(public_model__published_revision__isnull=False), enabled=True
    ).select_related("public_model", "supply__health", "supply__channel__health", "degradation_rule")
    return losses(
        (Bound(row.public_model.slug, row.tier, row.supply.slug, is_usable(row, now)) for row in rows),
        supplies,
    )
