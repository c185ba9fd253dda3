"""Once a minute: counts the slots anew, and ends what nothing else would notice has ended."""

from datetime import datetime, timedelta

from django.conf import settings

from dispatch.live_catalogue import live_catalogue
from dispatch.models import Occupancy
from dispatch.services import raise_alerts
from dispatch.services.answer_once import forget_receipts
from dispatch.services.reconcile import recount
from dispatch.services.watch_publication import watch_publication
from dispatch.unknown_slots import unknown_slots
from health.alerts import reraise_acknowledged, resolve_unseen
from health.services.end_outlived_refusals import end_outlived_refusals

NO_SELECTION_FOR = timedelta(minutes=15)


def keep_house(now: datetime) -> None:
    recount(now)
    end_outlived_refusals(now)
    watch_publication(now)
    forget_receipts(now)
    _look_at_unknown_slots(now)
    quiet = "the model had no selection for 15 minutes"
    resolve_unseen(raise_alerts.OF_SELECTION, now - NO_SELECTION_FOR, quiet, now)
    reraise_acknowledged(now - timedelta(seconds=settings.ALERT_RERAISE_AFTER_S), now)


def _look_at_unknown_slots(now: datetime) -> None:
    """Scans look only at the models of waiting jobs."""
    catalogue = live_catalogue(now)
    occupancy = {(row.kind, row.subject_id): row for row in Occupancy.objects.all()}
    found = unknown_slots(catalogue, catalogue.models.values(), occupancy)
    raise_alerts.unknown_slots_full(found, now)
