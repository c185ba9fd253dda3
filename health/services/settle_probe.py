"""The end of an attempt that held a re-probe, unless it was refused again."""

from datetime import datetime

from django.db import transaction

from health.memory import end_record
from health.models import RefusalRecord


def settle_probe(attempt: str, generated: bool, now: datetime) -> bool:
    """Generated clears the record; any other end gives the re-probe back and counts nothing.

    False: `attempt` (a public id) held none, the usual answer. Called once an attempt has really ended, in
    the transaction that ends it; a refusal goes to `record_refusal` instead."""
    held = RefusalRecord.objects.filter(probe=attempt, ended_at=None)
    if not generated:
        return held.update(probe="") > 0
    with transaction.atomic(savepoint=False):
        row = held.select_for_update().first()
        if row:
            end_record(row, by=attempt, why="the re-probe was generated", now=now)
        return row is not None
