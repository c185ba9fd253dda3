"""One attempt at a time may try again what was refused."""

from datetime import datetime

from django.db import transaction

from health.memory import record_of
from health.models import RefusalRecord
from health.refusals import may_claim


def claim_probe(record_id: int, attempt: str, now: datetime) -> bool:
    """True: `attempt` (a public id) holds the re-probe; false: somebody was first, or it is not due.

    Part of the dispatch transaction that creates the attempt. `settle_probe` or `record_refusal` gives it
    back; an attempt whose end is unknown keeps it."""
    with transaction.atomic(savepoint=False):
        row = RefusalRecord.objects.select_for_update().filter(pk=record_id, ended_at=None).first()
        if row is None or not may_claim(record_of(row), now):
            return False
        row.probe = attempt
        row.save(update_fields=["probe"])
        return True
