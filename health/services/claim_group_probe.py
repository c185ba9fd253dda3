"""After the pause of a capacity group one attempt probes it."""

from datetime import datetime

from django.db import transaction

from health.models import GroupPressure
from health.pressure import claimed, probe_due
from health.repository import pressure_of, store_pressure


def claim_group_probe(group_id: int, now: datetime) -> bool:
    """True: the caller's attempt probes the group, and until it went well the group takes no other.

    False: somebody was first. Part of the dispatch transaction that creates the attempt."""
    with transaction.atomic(savepoint=False):
        row = GroupPressure.objects.select_for_update().filter(pk=group_id).first()
        if row is None or not probe_due(pressure_of(row), now):
            return False
        store_pressure(row, claimed(pressure_of(row), now))
        return True
