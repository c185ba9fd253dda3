"""Whole hours, by which figures are kept; pure."""

from datetime import datetime, timedelta
from typing import Final

HOUR: Final = timedelta(hours=1)
COUNTED_EVERY: Final = timedelta(minutes=5)
WORK_KEPT_FOR: Final = timedelta(days=94)  # what the ledger's totals may reach back to, and some to spare
KEPT_FOR: Final = timedelta(days=9)  # a day, the same day a week before, and some to spare


def hour_of(at: datetime) -> datetime:
    """Its begin. Zones differ from UTC by quarters of an hour: a chart names the zone that it is in."""
    return at.replace(minute=0, second=0, microsecond=0)
