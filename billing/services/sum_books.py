"""Sums up both books by the hour. Lines are never changed, so a sum that stands is right for good."""

from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction
from django.db.models import Max, Model

from billing.models import Book, CreditEntry, ProviderUsageEntry, SummedTo

# A line is numbered before its transaction commits, and none lasts so long: what was the newest line then has
# nothing below it that is still on its way.
SETTLED_AFTER: Final = timedelta(minutes=2)
MOST: Final = 500_000  # lines of one call

_BOOKS: Final = {
    Book.CUSTOMERS: (CreditEntry, "NULL::bigint", "false"),
    Book.PROVIDERS: (ProviderUsageEntry, "supply_id", "platform_loss"),
}
_SUM: Final = """
INSERT INTO billing_hourofbook AS known (book, hour, kind, currency, supply_id, platform_loss, micros, lines)
SELECT %(book)s, date_trunc('hour', at), kind, currency, {supply}, {loss}, sum(amount_micros), count(*)
FROM {table} WHERE id > %(line)s AND id <= %(to)s GROUP BY 1, 2, 3, 4, 5, 6
ON CONFLICT (book, hour, kind, currency, supply_id, platform_loss)
DO UPDATE SET micros = known.micros + excluded.micros, lines = known.lines + excluded.lines"""


def sum_books(now: datetime) -> None:
    """Both, each in a transaction of its own."""
    for book in Book:
        _sum_book(book, now)


def _sum_book(book: Book, now: datetime) -> None:
    model, supply, loss = _BOOKS[book]
    with transaction.atomic():
        SummedTo.objects.get_or_create(book=book, defaults={"seen": _newest(model), "seen_at": now})
        known = SummedTo.objects.select_for_update().get(book=book)
        if now - known.seen_at < SETTLED_AFTER:
            return
        to = min(known.seen, known.line + MOST)
        if to > known.line:
            statement = _SUM.format(supply=supply, loss=loss, table=model._meta.db_table)
            with connection.cursor() as cursor:
                cursor.execute(statement, {"book": book, "line": known.line, "to": to})
        if to == known.seen:
            known.seen, known.seen_at = _newest(model), now
        known.line = to
        known.save()


def _newest(model: type[Model]) -> int:
    return model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0
