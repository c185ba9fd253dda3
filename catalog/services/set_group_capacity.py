"""Sets the limit that the channels of one endpoint and account share."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.models import CapacityGroup
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def set_group_capacity(
    endpoint: str, account: str, capacity: int, *, actor: Actor, now: datetime
) -> CapacityGroup:
    """`endpoint` as catalog.endpoints writes it, `capacity` in slots; makes the group where it is new."""
    lock_revision()
    group = CapacityGroup.objects.filter(endpoint=endpoint, account=account).first()
    if group and group.capacity == capacity:
        return group
    before = {"capacity": group.capacity} if group else None
    group = group or CapacityGroup(endpoint=endpoint, account=account)
    group.capacity = capacity
    group.save()
    after = {"endpoint": endpoint, "account": account, "capacity": capacity}
    record(actor, Change("set group capacity", f"capacity_group:{group.public_id}", before, after), now)
    bump_revision()
    return group
