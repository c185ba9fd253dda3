"""Once a minute: how many slots are taken and how many jobs wait, kept as the most of each hour."""

from datetime import datetime
from typing import Final

from django.db import connection, transaction

from dispatch.hours import KEPT_FOR, hour_of
from dispatch.models import HourOfQueue, PeakOfSlots
from dispatch.queries.waiting import waiting_now

_SLOTS: Final = """
INSERT INTO dispatch_peakofslots (kind, subject_id, hour, taken, seen_at)
SELECT kind, subject_id, %(hour)s, confirmed + unknown, %(now)s FROM dispatch_occupancy
WHERE confirmed + unknown > 0
ON CONFLICT (hour, kind, subject_id) DO UPDATE SET taken = excluded.taken, seen_at = excluded.seen_at
WHERE excluded.taken > dispatch_peakofslots.taken"""
_QUEUE: Final = """
INSERT INTO dispatch_hourofqueue (hour, waiting, seen_at) VALUES (%(hour)s, %(waiting)s, %(now)s)
ON CONFLICT (hour) DO UPDATE SET waiting = excluded.waiting, seen_at = excluded.seen_at
WHERE excluded.waiting > dispatch_hourofqueue.waiting"""


def note_peaks(now: datetime) -> None:
    """A peak between two looks is not seen. A place without a row in an hour had no slot taken."""
    hour, waiting = hour_of(now), waiting_now(now).waiting
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_SLOTS, {"hour": hour, "now": now})
        cursor.execute(_QUEUE, {"hour": hour, "now": now, "waiting": waiting})
        for kept in (PeakOfSlots, HourOfQueue):
            kept.objects.filter(hour__lt=now - KEPT_FOR).delete()
