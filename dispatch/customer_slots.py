"""The slots that customers' attempts hold, and the lock by which two at once take no more than they may.

A scan and a request for an image take slots beside each other, and neither sees what the other has not
committed. So each, when its leases are written, locks the customers that it began something for, and counts
again. No row is locked: submissions change the customer's row, and wait for neither."""

from collections.abc import Collection, Iterable
from typing import Final

from django.db import connection

_SPACE: Final = 7_304  # of advisory locks by customer
_NUMBERS: Final = 2**31


class Overtaken(Exception):
    """Others took slots of a customer since they were counted: with ours it would hold more than it may."""


def in_flight(customer_ids: Iterable[int]) -> dict[int, int]:
    """Slots that each customer's attempts occupy."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT customer_id, count(*) FROM dispatch_capacitylease
               WHERE released_at IS NULL AND customer_id = ANY(%s) GROUP BY 1""",
            [list(customer_ids)],
        )
        return dict(cursor.fetchall())


def locked_in_flight(customer_ids: Collection[int]) -> dict[int, int]:
    """As `in_flight`, and nobody adds to them until the transaction ends. In the order of the locks: behind
    slots, before customers."""
    keys = sorted({customer % _NUMBERS for customer in customer_ids})
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, key) FROM unnest(%s::int[]) AS key", [_SPACE, keys])
    return in_flight(customer_ids)
