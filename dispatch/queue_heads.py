"""Reads the fair queue: which lots have jobs, one job to look at for each, and the heads of lines.

Each read costs index probes by the number of lots, lines or heads asked for, never by what waits behind: a
line's watermark keeps them from walking over the entries of jobs that left, even where an old snapshot keeps
those from being cleaned away."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from dispatch.fairness import Head

MOST_OVERDUE_PASSED = 50  # at a head; the statement for deadlines comes to them in the same order


@dataclass(frozen=True, slots=True)
class ActiveLot:
    """A lot with waiting jobs, as its last look left it, and a job that stands for all of them."""

    lot_id: int
    public_model_id: int
    outcome: str
    signature: str
    looked_at: datetime | None
    refused: list[str]  # the candidates that refuse what stands in it
    job_id: int | None  # None: all that were counted are just leaving


@dataclass(slots=True)
class WaitingLine:
    """A line of a lot in which somebody could start, with its tenant's standing."""

    line_id: int
    lot_id: int
    watermark_at: datetime
    arrivals: int
    tenant_id: int
    customer_id: int
    service_class: str
    deficit_ms: int
    lap: int
    is_new: bool
    returned: bool
    last_end_user: str
    held_back: str
    weight: int
    max_in_flight: int
    waiting: int
    depth: int = 0  # of the last read; 0: not read yet


# One line of each lot, and of it one job: any does, since they are decided alike.
_LOTS = """
SELECT lot.id, lot.public_model_id, lot.outcome, lot.signature, lot.looked_at,
       ARRAY(SELECT jsonb_array_elements_text(lot.asks -> 'refused')), job.id
FROM (SELECT DISTINCT ON (lot_id) lot_id, id, watermark_at FROM dispatch_line
      WHERE is_active ORDER BY lot_id) AS line
JOIN dispatch_lot AS lot ON lot.id = line.lot_id
LEFT JOIN LATERAL (SELECT id FROM dispatch_job WHERE line_id = line.id AND queue_at >= line.watermark_at
                   ORDER BY end_user, queue_at LIMIT 1) AS job ON true
ORDER BY coalesce(lot.looked_at, lot.created_at), lot.id LIMIT %(most)s"""

_LINES = """
SELECT line.id, line.lot_id, line.watermark_at, line.arrivals, tenant.id, tenant.customer_id,
       tenant.service_class, tenant.deficit_ms, tenant.lap, tenant.is_new, tenant.returned,
       tenant.last_end_user, tenant.held_back, customer.weight, customer.max_in_flight, line.waiting
FROM dispatch_line AS line
JOIN dispatch_tenantqueue AS tenant ON tenant.id = line.tenant_id
JOIN billing_customer AS customer ON customer.id = tenant.customer_id
WHERE line.is_active AND line.lot_id = ANY(%(lots)s)"""

# The end users of each line from the one after the last on, and round again from the first; then some jobs of
# each, so that all of them together are as many as were asked for. One of whom only overdue jobs were met has
# no head, and is told all the same.
_HEADS = """
SELECT line.id, users.end_user, users.all_of_them, users.users, head.id, head.queue_at, head.estimated_ms
FROM unnest(%(lines)s::bigint[], %(watermarks)s::timestamptz[], %(last_users)s::text[])
     AS line(id, watermark_at, last_user)
CROSS JOIN LATERAL (
    WITH RECURSIVE after(end_user, n) AS (
        SELECT (SELECT end_user FROM dispatch_job
                WHERE line_id = line.id AND end_user > line.last_user ORDER BY end_user LIMIT 1), 1
        UNION ALL
        SELECT (SELECT end_user FROM dispatch_job
                WHERE line_id = line.id AND end_user > after.end_user ORDER BY end_user LIMIT 1), n + 1
        FROM after WHERE after.end_user IS NOT NULL AND n < %(depth)s),
    before(end_user, n) AS (
        SELECT (SELECT end_user FROM dispatch_job
                WHERE line_id = line.id AND end_user <= line.last_user AND queue_at >= line.watermark_at
                ORDER BY end_user LIMIT 1), 1
        UNION ALL
        SELECT (SELECT end_user FROM dispatch_job
                WHERE line_id = line.id AND end_user > before.end_user AND end_user <= line.last_user
                ORDER BY end_user LIMIT 1), n + 1
        FROM before WHERE before.end_user IS NOT NULL AND n < %(depth)s),
    either AS (
        SELECT end_user, 0 AS turn, n FROM after WHERE end_user IS NOT NULL
        UNION ALL SELECT end_user, 1, n FROM before WHERE end_user IS NOT NULL)
    SELECT end_user, count(*) OVER () AS users,
           (SELECT count(*) FROM either) < %(depth)s AS all_of_them
    FROM (SELECT * FROM either ORDER BY turn, n LIMIT %(depth)s) AS nearest) AS users
LEFT JOIN LATERAL (
    SELECT id, queue_at, estimated_ms FROM (
        SELECT id, queue_at, estimated_ms, dispatch_deadline_at FROM dispatch_job
        WHERE line_id = line.id AND end_user = users.end_user AND queue_at >= line.watermark_at
        ORDER BY queue_at, id LIMIT %(depth)s + %(overdue)s) AS nearest
    WHERE dispatch_deadline_at > %(now)s
    ORDER BY queue_at, id LIMIT (%(depth)s + users.users - 1) / users.users) AS head ON true
ORDER BY line.id, users.end_user, head.queue_at, head.id"""


@dataclass(frozen=True, slots=True)
class LineHeads:
    """The nearest jobs of a line. `watermark_at`: none that may begin stands before it; None: not known.
    `is_all`: nothing that may begin stands behind them."""

    heads: list[Head]
    watermark_at: datetime | None
    is_all: bool


def active_lots(most: int) -> list[ActiveLot]:
    """Those that were not looked at for the longest time first; a new one counts from when it was made, so
    that new ones without end keep nobody from being looked at."""
    with connection.cursor() as cursor:
        cursor.execute(_LOTS, {"most": most})
        return [ActiveLot(*row) for row in cursor.fetchall()]


def waiting_lines(lot_ids: Iterable[int]) -> list[WaitingLine]:
    with connection.cursor() as cursor:
        cursor.execute(_LINES, {"lots": list(lot_ids)})
        return [WaitingLine(*row) for row in cursor.fetchall()]


def heads_of(lines: list[WaitingLine], depth: int, now: datetime) -> dict[int, LineHeads]:
    """About `depth` of the nearest jobs of each line whose deadline is not over, by line."""
    asked: dict[str, Any] = {
        "lines": [line.line_id for line in lines],
        "watermarks": [line.watermark_at for line in lines],
        "last_users": [line.last_end_user for line in lines],
        "depth": depth,
        "overdue": MOST_OVERDUE_PASSED,
        "now": now,
    }
    found: dict[int, list[_HeadRow]] = {line.line_id: [] for line in lines}
    with connection.cursor() as cursor:
        cursor.execute(_HEADS, asked)
        for line_id, *row in cursor.fetchall():
            found[line_id].append(_HeadRow(*row))
    return {line_id: _heads(line_id, rows, depth) for line_id, rows in found.items()}


@dataclass(frozen=True, slots=True)
class _HeadRow:
    end_user: str
    all_of_them: bool  # these are all of the line's end users
    users: int  # how many were asked for heads
    job: int | None  # None: whatever was met of this end user is overdue
    queue_at: datetime | None
    estimated_ms: int | None


def _heads(line_id: int, rows: list[_HeadRow], depth: int) -> LineHeads:
    """An end user without a head may have some behind those that are overdue: nothing is known of the line's
    beginning then, nor of its end."""
    heads = [
        Head(row.job, line_id, row.end_user, row.queue_at.timestamp(), row.estimated_ms or 0)
        for row in rows
        if row.job is not None and row.queue_at is not None
    ]
    sure = all(row.all_of_them and row.job is not None for row in rows)
    of_user = Counter(head.end_user for head in heads)
    is_all = sure and all(of_user[row.end_user] < -(-depth // row.users) for row in rows)
    first = min((row.queue_at for row in rows if row.queue_at is not None), default=None)
    return LineHeads(heads, first if sure else None, is_all)
