"""Ends jobs that wait in the queue past their deadline: by the index on it, many by a few statements.

After a long outage a million may be overdue: each scan ends so many and no more, and jobs begin meanwhile."""

from collections import Counter
from datetime import datetime
from typing import Final

from django.db import connection, transaction

from billing import ledger
from dispatch import queue
from dispatch.lifecycle import JobState
from dispatch.words import customer_error

BATCH: Final = 1_000

_OVERDUE = """
SELECT id, line_id, customer_id, public_id, reserved_micros FROM dispatch_job
WHERE line_id IS NOT NULL AND dispatch_deadline_at <= %(now)s
ORDER BY dispatch_deadline_at LIMIT %(most)s FOR UPDATE SKIP LOCKED"""
_EXPIRE = """
UPDATE dispatch_job
SET state = %(state)s, state_version = state_version + 1, line_id = NULL, next_action_at = NULL,
    finished_at = %(now)s, error_code = %(code)s, error_message = %(message)s
WHERE id = ANY(%(ids)s)"""


def expire_parked(now: datetime, most: int = BATCH) -> int:
    """How many it ended, at most `most`; none of them ever had an attempt."""
    code, message = customer_error(JobState.EXPIRED, None, access_revoked=False)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_OVERDUE, {"now": now, "most": most})
        overdue = cursor.fetchall()
        if not overdue:
            return 0
        cursor.execute(
            _EXPIRE,
            {
                "state": JobState.EXPIRED,
                "now": now,
                "code": code,
                "message": message,
                "ids": [job for job, *_ in overdue],
            },
        )
        reserved = [(customer, public_id, micros) for _, _, customer, public_id, micros in overdue]
        ledger.release_many(reserved, f"job {JobState.EXPIRED}", now)
        gone = Counter(line for _, line, *_ in overdue)
        queue.lock_lines(sorted(gone))
        queue.leave_many(gone)
    return len(overdue)
