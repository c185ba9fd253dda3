"""The end of attempts that held a re-probe, unless they were refused again."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from health.memory import end_record
from health.models import RefusalRecord


def settle_probe(attempt: str, generated: bool, now: datetime) -> bool:
    return settle_probes({attempt: generated}, now) > 0


def settle_probes(generated: Mapping[str, bool], now: datetime) -> int:
    """Generated clears the record; any other end gives the re-probe back and counts nothing.

    `generated`: whether it was, by the public id of an attempt. How many held one; usually none does. Called
    once attempts have really ended, in the transaction that ends them; a refusal goes to `record_refusal`."""
    if not generated:
        return 0
    with transaction.atomic(savepoint=False):
        held = RefusalRecord.objects.filter(probe__in=generated, ended_at=None)
        rows = list(held.select_for_update().order_by("pk"))
        for row in rows:
            if generated[row.probe]:
                end_record(row, by=row.probe, why="the re-probe was generated", now=now)
            else:
                row.probe = ""
                row.save(update_fields=["probe"])
    return len(rows)
