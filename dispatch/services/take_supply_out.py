"""Disables a supply on an operator's word: nothing new starts there, what runs is followed."""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from catalog.audit import Actor
from catalog.models import Supply
from dispatch.queries.impact import impact_of
from health.circuit import Subject
from health.services.switch import disable


@transaction.atomic
def take_supply_out(
    supply_id: int, reason: str, ticked: Collection[str], *, actor: Actor, now: datetime
) -> dict[str, str]:
    """Empty when it is disabled, now or already; else what is wrong, by field, and nothing is changed.

    `ticked` names each tier that loses its last supply, as `model:tier`. `health.services.switch.enable`
    brings it back, by probing."""
    supply = Supply.objects.get(pk=supply_id)
    last = {loss.key for loss in impact_of({supply.slug}, now) if loss.is_last}
    faults = {}
    if not reason.strip():
        faults["reason"] = "no_reason"
    if last - set(ticked):
        faults["losses"] = "not_ticked"
    if not faults:
        disable(Subject.SUPPLY, supply.pk, actor, reason.strip(), now)
    return faults
