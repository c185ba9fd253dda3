"""Takes a channel out of service until a given time: nothing new starts there, what runs is followed."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.models import AdminState, Channel
from catalog.repository import channel_facts
from catalog.revision import lock_revision
from catalog.services.save_channel import save_channel
from dispatch.maintenance import SWITCH, Wanted, faults_of
from dispatch.models import Maintenance
from dispatch.queries.impact import impact_of
from health.circuit import Subject
from health.services.switch import disable


@transaction.atomic
def start_maintenance(
    channel_id: int, wanted: Wanted, ticked: Collection[str], *, actor: Actor, now: datetime
) -> Maintenance | dict[str, str]:
    """The maintenance; or what is wrong, by field, and nothing is changed. `ticked` names each tier that
    loses its last supply, as `model:tier`: one that came since the page was read is not among them."""
    lock_revision()  # two operators at once: the second finds the first one's
    channel = Channel.objects.get(pk=channel_id)
    goes_on = Maintenance.objects.filter(channel=channel, ended_at=None).exists()
    if goes_on or channel.state == AdminState.DISABLED:
        return {"channel": "out_already"}
    supplies = list(channel.supplies.values_list("slug", flat=True))
    last = {loss.key for loss in impact_of(supplies, now) if loss.is_last}
    if faults := faults_of(wanted, last, ticked, now):
        return faults
    return _started(channel, wanted, sorted(last), actor, now)


def _started(channel: Channel, wanted: Wanted, last: list[str], actor: Actor, now: datetime) -> Maintenance:
    assert wanted.until_at is not None  # noqa: S101 - a fault otherwise
    reason = wanted.reason.strip()
    maintenance = Maintenance.objects.create(
        channel=channel,
        mode=wanted.mode,
        at_end=wanted.at_end,
        reason=reason,
        started_at=now,
        started_by=actor.name,
        until_at=wanted.until_at,
    )
    facts = replace(channel_facts(channel), state=SWITCH[wanted.mode])
    save_channel(facts, expected_revision=channel.revision, actor=actor, now=now)
    disable(Subject.CHANNEL, channel.pk, actor, f"maintenance: {reason}"[:300], now)
    after = {
        "maintenance": maintenance.public_id,
        "mode": wanted.mode,
        "until": wanted.until_at.isoformat(),
        "at_end": wanted.at_end,
        "reason": reason,
        "last_supply_of": last,
    }
    record(actor, Change("start maintenance", f"channel:{channel.public_id}", after=after), now)
    return maintenance
