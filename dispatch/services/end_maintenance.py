"""Brings a channel back from maintenance: it is probed first, and goes up the recovery's steps."""

from dataclasses import replace
from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.models import AdminState, Channel
from catalog.repository import channel_facts
from catalog.revision import lock_revision
from catalog.services.save_channel import save_channel
from dispatch.maintenance import SWITCH
from dispatch.models import Maintenance
from dispatch.services.raise_alerts import maintenance_over
from health.circuit import Subject
from health.services.switch import enable


@transaction.atomic
def end_maintenance(maintenance_id: int, *, actor: Actor, now: datetime) -> bool:
    """False: it had ended. A switch that somebody set otherwise meanwhile stays as they set it."""
    lock_revision()
    maintenance = Maintenance.objects.select_related("channel").get(pk=maintenance_id)
    if maintenance.ended_at is not None:
        return False
    maintenance.ended_at, maintenance.ended_by = now, actor.name
    maintenance.save(update_fields=["ended_at", "ended_by"])
    channel = maintenance.channel
    if channel.state == SWITCH[maintenance.mode]:
        _switch_on(channel, actor, now)
    enable(Subject.CHANNEL, channel.pk, actor, "end of maintenance", now)
    maintenance_over(channel.slug, f"{actor.name} ended it", now)
    after = {"maintenance": maintenance.public_id, "then": "probing"}
    record(actor, Change("end maintenance", f"channel:{channel.public_id}", after=after), now)
    return True


def _switch_on(channel: Channel, actor: Actor, now: datetime) -> None:
    facts = replace(channel_facts(channel), state=AdminState.ENABLED.value)
    save_channel(facts, expected_revision=channel.revision, actor=actor, now=now)
