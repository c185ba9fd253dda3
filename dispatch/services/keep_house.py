"""Once a minute: counts the slots anew, watches what is out of the ordinary, and ends what has ended."""

import logging
from datetime import datetime, timedelta

from django.conf import settings

from billing.services.sum_books import sum_books
from dispatch.live_catalogue import live_catalogue
from dispatch.models import Occupancy
from dispatch.services import raise_alerts
from dispatch.services.answer_once import forget_receipts
from dispatch.services.count_hours import count_hours
from dispatch.services.end_publication_watches import end_publication_watches
from dispatch.services.end_revoked import end_revoked
from dispatch.services.expire_outputs import expire_outputs
from dispatch.services.forget_lots import forget_lots
from dispatch.services.measure_times import measure_times
from dispatch.services.note_peaks import note_peaks
from dispatch.services.recount import recount
from dispatch.services.resolve_ended import resolve_ended
from dispatch.services.right_queue import right_queue
from dispatch.services.take_callback import trim_rejected
from dispatch.services.watch_credentials import watch_credentials
from dispatch.services.watch_maintenance import watch_maintenance
from dispatch.services.watch_publication import watch_publication
from dispatch.services.watch_rates import watch_rates
from dispatch.unknown_slots import unknown_slots
from health.alerts import reraise_acknowledged, resolve_unseen
from health.services.end_outlived_refusals import end_outlived_refusals

logger = logging.getLogger(__name__)


def keep_house(now: datetime) -> None:
    """Every chore, also after one that failed; the failures are raised together at the end."""
    failures = []
    for chore in CHORES:
        try:
            chore(now)
        except Exception as failure:
            logger.exception("A chore of housekeeping failed", extra={"chore": chore.__name__})
            failures.append(failure)
    if failures:
        raise ExceptionGroup("housekeeping left some of its work undone", failures)


def _recount(now: datetime) -> None:
    recount(now)
    resolve_unseen(["lease_drift"], now, "the next count found no difference", now)


def _right_queue(now: datetime) -> None:
    right_queue(now)
    resolve_unseen(["queue_drift"], now, "the next count found no difference", now)


def _look_at_unknown_slots(now: datetime) -> None:
    """Scans look only at the models of waiting jobs."""
    catalogue = live_catalogue(now)
    occupancy = {(row.kind, row.subject_id): row for row in Occupancy.objects.all()}
    found = unknown_slots(catalogue, catalogue.models.values(), occupancy)
    raise_alerts.unknown_slots_full(found, now)


def _raise_again(now: datetime) -> None:
    reraise_acknowledged(now - timedelta(seconds=settings.ALERT_RERAISE_AFTER_S), now)


def _trim_rejected_callbacks(_now: datetime) -> None:
    trim_rejected()


CHORES = (
    _recount,
    _right_queue,
    forget_lots,
    end_revoked,
    measure_times,
    note_peaks,
    count_hours,
    sum_books,
    end_publication_watches,
    end_outlived_refusals,
    watch_publication,
    forget_receipts,
    _look_at_unknown_slots,
    watch_rates,
    watch_credentials,
    watch_maintenance,
    resolve_ended,
    _raise_again,
    expire_outputs,
    _trim_rejected_callbacks,
)
