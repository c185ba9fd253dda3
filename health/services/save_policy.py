"""New parameters of the health machine: of the installation, one channel, or one supply."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max

from catalog.audit import Actor, Change, record
from health.models import HealthPolicy
from health.parameters import parse_parameters


def save_policy(
    parameters: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    *,
    channel_id: int | None = None,
    supply_id: int | None = None,
) -> HealthPolicy:
    """A new version that holds from the next evidence on; `parameters` names only what differs from the
    layer above (installation, channel, supply). Raises ParametersError, and IntegrityError where somebody
    saved the same version first."""
    parse_parameters(parameters)
    of_subject = HealthPolicy.objects.filter(channel=channel_id, supply=supply_id)
    with transaction.atomic():
        newest = of_subject.aggregate(newest=Max("version"))["newest"] or 0
        before = of_subject.filter(version=newest).values_list("parameters", flat=True).first()
        policy = HealthPolicy.objects.create(
            channel_id=channel_id,
            supply_id=supply_id,
            version=newest + 1,
            parameters=dict(parameters),
            saved_by=actor.name,
            saved_at=now,
        )
        change = Change("save health policy", f"health_policy:{policy.public_id}", before, dict(parameters))
        record(actor, change, now)
    return policy
