"""The product's own way to a slot: locked counts of channel and supply, a lease, one commit; then a release.

Its arguments: how many slots one transaction takes at most (the scan takes as many as are free), and for how
many seconds each is held."""

import sys
from datetime import datetime

import django
from django.db import connection, transaction
from django.utils.timezone import now

from tests.benchmarks.leases_reserving import RESERVERS, SLOTS, Overbooked, serve_reservers


def main(at_once: int, hold_s: float) -> None:
    from catalog.ids import public_id
    from catalog.models import Supply
    from dispatch import capacity
    from dispatch.models import Attempt, CapacityLease
    from tests.factories import AttemptFactory, SupplyFactory

    # The programs of one run take turns with the same rows.
    supply = Supply.objects.first() or SupplyFactory(concurrency=SLOTS)
    attempts = list(Attempt.objects.filter(supply=supply)[:RESERVERS]) or [
        AttemptFactory(supply=supply, state="failed") for _ in range(RESERVERS)
    ]
    place = capacity.Place(supply.channel_id, supply.pk, None)

    class Product:
        def __init__(self, number: int) -> None:
            self.attempts = attempts[number * at_once : (number + 1) * at_once]
            self.leases: list[CapacityLease] = []
            connection.ensure_connection()

        def reserve(self) -> int:
            moment = now()
            with transaction.atomic():
                occupancy = capacity.locked_occupancy([place])
                free = SLOTS - max(row.confirmed + row.unknown for row in occupancy.values())
                self.leases = (
                    [self.lease(attempt, moment) for attempt in self.attempts[:free]] if free > 0 else []
                )
                if not self.leases:
                    return 0
                for _ in self.leases:
                    capacity.take(place, occupancy)
                capacity.write(occupancy)
                CapacityLease.objects.bulk_create(self.leases)
                held = CapacityLease.objects.filter(channel=supply.channel_id, released_at=None).count()
                if held > SLOTS:
                    raise Overbooked(f"{held} of {SLOTS}")
            return len(self.leases)

        def lease(self, attempt: Attempt, moment: datetime) -> CapacityLease:
            return CapacityLease(
                token=public_id("lse"),
                attempt=attempt,
                channel_id=place.channel_id,
                supply_id=place.supply_id,
                granted_at=moment,
                renewed_at=moment,
                expires_at=moment + capacity.LEASE_TTL,
            )

        def release(self) -> None:
            """Attempts end one by one."""
            for lease in self.leases:
                with transaction.atomic():
                    capacity.release(lease.token, now(), "completed")

        def close(self) -> None:
            connection.close()

    serve_reservers(Product, RESERVERS // at_once, hold_s)


if __name__ == "__main__":
    django.setup()
    main(int(sys.argv[1]), float(sys.argv[2]))
