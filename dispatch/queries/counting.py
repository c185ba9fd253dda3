"""Counts that stop in time: an exact one of a big table costs as much as the table is big."""

from typing import Any, Final

from django.db.models import QuerySet

COUNTED_UP_TO: Final = 10_000  # counting stops here: "10,000+"


def capped(rows: QuerySet[Any]) -> int:
    """How many there are, at most COUNTED_UP_TO."""
    return rows.order_by()[:COUNTED_UP_TO].count()
