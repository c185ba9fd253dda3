"""Once a minute: lots that nobody has waited in for a day are forgotten; a next job makes its lot again.

Without this the scan's tables would keep a row for every shape that any customer ever asked for."""

from datetime import datetime, timedelta

from dispatch import queue

FORGOTTEN_AFTER = timedelta(days=1)
MOST = 1_000  # in one minute


def forget_lots(now: datetime) -> None:
    queue.forget_lots(now - FORGOTTEN_AFTER, MOST)
