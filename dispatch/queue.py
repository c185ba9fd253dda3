"""Into the fair queue and out of it, with its counts, in the caller's transaction.

Rows are locked in one order everywhere: the customer, its tenant queues, their lines. A count is never read
from the jobs: `waiting` of tenants and lines is proved equal to them by the reconciler."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import connection

from billing.priorities import head_start, level_of
from catalog.hashing import document_hash
from catalog.shape import shape_of
from catalog.statements import prepared
from dispatch.estimates import estimated_ms, kind_of_work
from dispatch.models import Job, Line, Lot, TenantQueue
from dispatch.selecting import demands_of

_FIND = """
SELECT (SELECT p50_ms FROM dispatch_providertime
        WHERE public_model_id = %(model)s AND mode = %(mode)s AND size = %(size)s
          AND duration_s = %(seconds)s),
       (SELECT line.id FROM dispatch_lot AS lot
        JOIN dispatch_tenantqueue AS tenant
          ON tenant.customer_id = %(customer)s AND tenant.service_class = %(class)s
        JOIN dispatch_line AS line ON line.lot_id = lot.id AND line.tenant_id = tenant.id
        WHERE lot.key = %(key)s)"""

# The second CTE reads the first, so the tenant's row is locked before the line's.
_ENTER = """
WITH tenant AS (
    UPDATE dispatch_tenantqueue AS tenant
    SET waiting = tenant.waiting + 1, returned = tenant.returned OR tenant.waiting = 0
    FROM dispatch_line AS line WHERE line.id = %(line)s AND tenant.id = line.tenant_id RETURNING tenant.id),
line AS (
    UPDATE dispatch_line AS line
    SET waiting = line.waiting + 1, is_active = true, arrivals = line.arrivals + 1,
        watermark_at = CASE WHEN line.waiting = 0 THEN %(queue_at)s
                            ELSE least(line.watermark_at, %(queue_at)s) END
    FROM tenant WHERE line.id = %(line)s AND line.tenant_id = tenant.id RETURNING line.id)
SELECT (SELECT count(*) FROM line), coalesce(sum(queue.waiting), 0) FROM dispatch_tenantqueue AS queue
WHERE queue.customer_id = %(customer)s"""

_LEAVE = """
WITH tenant AS (
    UPDATE dispatch_tenantqueue AS tenant SET waiting = tenant.waiting - 1
    FROM dispatch_line AS line WHERE line.id = %(line)s AND tenant.id = line.tenant_id RETURNING tenant.id)
UPDATE dispatch_line AS line SET waiting = line.waiting - 1, is_active = line.waiting > 1
FROM tenant WHERE line.id = %(line)s AND line.tenant_id = tenant.id"""

_LEAVE_MANY = """
WITH gone AS (SELECT * FROM unnest(%(lines)s::bigint[], %(counts)s::int[]) AS gone(line_id, jobs)),
tenant AS (
    UPDATE dispatch_tenantqueue AS tenant SET waiting = tenant.waiting - left_by.jobs
    FROM (SELECT line.tenant_id, sum(gone.jobs) AS jobs
          FROM gone JOIN dispatch_line AS line ON line.id = gone.line_id GROUP BY 1) AS left_by
    WHERE tenant.id = left_by.tenant_id RETURNING tenant.id),
line AS (
    UPDATE dispatch_line AS line SET waiting = line.waiting - gone.jobs, is_active = line.waiting > gone.jobs
    FROM gone WHERE line.id = gone.line_id AND (SELECT count(*) FROM tenant) >= 0)
SELECT 1"""

_WAITING = """
SELECT EXISTS (SELECT FROM dispatch_line WHERE is_active)
    OR EXISTS (SELECT FROM dispatch_job WHERE next_action_at IS NOT NULL)"""


_FORGET = """
WITH idle AS MATERIALIZED (
    SELECT lot.id FROM dispatch_lot AS lot
    WHERE coalesce(lot.looked_at, lot.created_at) <= %(idle_since)s
      AND NOT EXISTS (SELECT FROM dispatch_line WHERE lot_id = lot.id AND is_active)
    ORDER BY lot.id LIMIT %(most)s FOR UPDATE SKIP LOCKED),
held AS MATERIALIZED (
    SELECT line.id, line.is_active FROM dispatch_line AS line JOIN idle ON idle.id = line.lot_id
    FOR UPDATE OF line SKIP LOCKED),
gone AS (
    SELECT idle.id FROM idle WHERE NOT EXISTS (
        SELECT FROM dispatch_line AS line LEFT JOIN held ON held.id = line.id
        WHERE line.lot_id = idle.id
          AND (held.is_active IS NOT false OR EXISTS (SELECT FROM dispatch_job WHERE line_id = line.id)))),
lines AS (DELETE FROM dispatch_line AS line USING gone WHERE line.lot_id = gone.id)
DELETE FROM dispatch_lot AS lot USING gone WHERE lot.id = gone.id"""


def take_place(job: Job, now: datetime) -> None:
    """Sets where a job that is being admitted stands and what it costs; nothing of it changes any more.

    Its line is made where it is the first of its kind; no row that others use is locked."""
    shape = shape_of(job.modality, job.request)
    mode, size, seconds = kind_of_work(shape)
    key, asks = lot_of(job)
    asked: dict[str, Any] = {
        "model": job.public_model_id,
        "mode": mode,
        "size": size,
        "seconds": seconds,
        "customer": job.customer_id,
        "class": job.service_class,
        "key": key,
    }
    with prepared() as cursor:
        cursor.execute(_FIND, asked)
        known_ms, line_id = cursor.fetchone()
    level = level_of(job.project, job.customer.project_priorities)
    job.line_id = line_id or _new_line(job, key, asks, now)
    job.project_priority, job.queue_at = level, job.created_at - head_start(level)
    job.estimated_ms = estimated_ms(shape, known_ms)


def lot_of(job: Job, refused: Iterable[str] = ()) -> tuple[str, dict[str, Any]]:
    """The key of the jobs that one selection decides alike, and what they ask for in words.

    `refused`: candidates whose adapter does not take this very request. At admission nobody has asked them;
    a job that turns out to differ from its lot moves to the lot of those like it."""
    demands = asdict(demands_of(job))
    asks: dict[str, Any] = {
        "shape": asdict(shape_of(job.modality, job.request)),
        "demands": {
            name: sorted(asked) if isinstance(asked, (set, frozenset)) else asked
            for name, asked in demands.items()
        },
    }
    if refused:
        asks["refused"] = sorted(refused)
    return document_hash([job.public_model_id, asks]), asks


def move(job: Job, refused: Iterable[str], now: datetime) -> None:
    """Puts a job that left its line into that of the lot where those candidates refuse; it keeps its rank."""
    key, asks = lot_of(job, refused)
    job.line_id = _new_line(job, key, asks, now)
    Job.objects.filter(pk=job.pk).update(line_id=job.line_id)
    enter(job)


def _new_line(job: Job, key: str, asks: Mapping[str, Any], now: datetime) -> int:
    """Of many first jobs at once each finds the same rows."""
    TenantQueue.objects.bulk_create(
        [TenantQueue(customer_id=job.customer_id, service_class=job.service_class)], ignore_conflicts=True
    )
    lot_id = _kept_lot(job, key, asks, now)
    tenant = TenantQueue.objects.only("pk").get(customer=job.customer_id, service_class=job.service_class)
    Line.objects.bulk_create([Line(lot_id=lot_id, tenant=tenant, watermark_at=now)], ignore_conflicts=True)
    return Line.objects.only("pk").get(lot=lot_id, tenant=tenant).pk


def _kept_lot(job: Job, key: str, asks: Mapping[str, Any], now: datetime) -> int:
    """Its id; until the end of the transaction nobody forgets it."""
    lot = Lot(key=key, public_model_id=job.public_model_id, asks=dict(asks), created_at=now)
    while True:
        Lot.objects.bulk_create([lot], ignore_conflicts=True)
        with prepared() as cursor:
            cursor.execute("SELECT id FROM dispatch_lot WHERE key = %s FOR KEY SHARE", [key])
            if found := cursor.fetchone():
                return int(found[0])


def enter(job: Job) -> int:
    """Counts a stored job in. How many its customer had waiting before it.

    Exact where the caller has locked the customer's row, as a reserve does. A line that was forgotten since
    it was found is made again."""
    with prepared() as cursor:
        cursor.execute(_ENTER, {"line": job.line_id, "customer": job.customer_id, "queue_at": job.queue_at})
        counted, waiting = cursor.fetchone()
    if counted:
        return int(waiting)
    job.line_id = _new_line(job, *lot_of(job), job.created_at)
    Job.objects.filter(pk=job.pk).update(line_id=job.line_id)
    return enter(job)


def leave(line_id: int) -> None:
    """Counts one job out. Call it after anything that locks the customer."""
    with prepared() as cursor:
        cursor.execute(_LEAVE, {"line": line_id})


def leave_many(gone: Mapping[int, int]) -> None:
    """Counts jobs out, by line. The caller locked the rows (`lock_lines`)."""
    if gone:
        with prepared() as cursor:
            cursor.execute(_LEAVE_MANY, {"lines": list(gone), "counts": list(gone.values())})


def lock_lines(line_ids: list[int]) -> None:
    """Their tenants, then they, in the order of their ids."""
    with prepared() as cursor:
        cursor.execute(
            """SELECT 1 FROM dispatch_tenantqueue WHERE id IN
               (SELECT tenant_id FROM dispatch_line WHERE id = ANY(%s)) ORDER BY id FOR NO KEY UPDATE""",
            [line_ids],
        )
        cursor.execute(
            "SELECT 1 FROM dispatch_line WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", [line_ids]
        )


def forget_lots(idle_since: datetime, most: int) -> int:
    """Takes out lots in which nobody waits, and nobody has been looked at since; their lines with them.

    Waits for nobody: what somebody else holds just now is in use."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, {"idle_since": idle_since, "most": most})
        return cursor.rowcount


def is_anything_waiting() -> bool:
    """In the fair queue, or by itself."""
    with prepared() as cursor:
        cursor.execute(_WAITING)
        return bool(cursor.fetchone()[0])
