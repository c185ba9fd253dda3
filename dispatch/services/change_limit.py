"""Changes how many slots a group, a channel or a supply has, for a reason that the audit keeps."""

from dataclasses import replace
from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.models import CapacityGroup, Channel, Supply
from catalog.repository import channel_facts, supply_facts
from catalog.services.save_channel import save_channel
from catalog.services.save_supply import save_supply
from catalog.services.set_group_capacity import set_group_capacity

type Limited = CapacityGroup | Channel | Supply


@transaction.atomic
def change_limit(
    row: Limited, limit: int, *, expected: int, reason: str, actor: Actor, now: datetime
) -> None:
    """`expected`: the limit that the person looked at. Raises ValueError for a limit below 1 or no reason,
    StaleLimit where somebody changed it meanwhile. Running attempts keep their slots."""
    if limit < 1 or not reason.strip():
        raise ValueError("a limit is a whole number from 1, and has a reason")
    row = type(row).objects.select_for_update().get(pk=row.pk)  # type: ignore[attr-defined]
    before = limit_of(row)
    if before != expected:
        raise StaleLimit(before)
    _save(row, limit, actor, now)
    after = {"limit": limit, "reason": reason.strip()}
    record(actor, Change("change limit", subject_of(row), {"limit": before}, after), now)


class StaleLimit(Exception):
    """Somebody changed the limit meanwhile; `limit` is what it is now."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"the limit is {limit} by now")


def limit_of(row: Limited) -> int:
    return row.capacity if isinstance(row, CapacityGroup) else row.concurrency


def subject_of(row: Limited) -> str:
    kinds = {CapacityGroup: "capacity_group", Channel: "channel", Supply: "supply"}
    return f"{kinds[type(row)]}:{row.public_id}"


def _save(row: Limited, limit: int, actor: Actor, now: datetime) -> None:
    if isinstance(row, CapacityGroup):
        set_group_capacity(row.endpoint, row.account, limit, actor=actor, now=now)
    elif isinstance(row, Channel):
        facts = replace(channel_facts(row), concurrency=limit)
        save_channel(facts, expected_revision=row.revision, actor=actor, now=now)
    else:
        of_supply = replace(supply_facts(row), concurrency=limit)
        save_supply(of_supply, expected_revision=row.revision, actor=actor, now=now)
