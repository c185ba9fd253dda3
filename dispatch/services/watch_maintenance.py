"""Once a minute: which maintenances are about to end, and which end by the clock as was chosen."""

import logging
from datetime import datetime

from catalog.audit import Actor
from dispatch.maintenance import REMIND_BEFORE
from dispatch.models import AtEnd, Maintenance
from dispatch.services.end_maintenance import end_maintenance
from dispatch.services.raise_alerts import maintenance_ending

logger = logging.getLogger(__name__)
CLOCK = Actor("clock", "housekeeping")


def watch_maintenance(now: datetime) -> None:
    """Nothing gets healthy by itself: at its end a channel is probed, or stays off until one comes.

    One that fails keeps no other from its end; the failures are raised together afterwards."""
    failures = []
    due = Maintenance.objects.filter(ended_at=None, until_at__lte=now + REMIND_BEFORE)
    for maintenance in due.select_related("channel"):
        try:
            _look_at(maintenance, now)
        except Exception as failure:
            logger.exception("A maintenance was not ended", extra={"channel": maintenance.channel.slug})
            failures.append(failure)
    if failures:
        raise ExceptionGroup("some maintenances were not ended", failures)


def _look_at(maintenance: Maintenance, now: datetime) -> None:
    maintenance_ending(maintenance, now)
    if maintenance.until_at <= now and maintenance.at_end == AtEnd.PROBE:
        end_maintenance(maintenance.pk, actor=CLOCK, now=now)
