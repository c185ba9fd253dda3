"""Proves the queue's counts equal to the jobs in it; what differs is corrected, told and audited."""

from datetime import datetime

from django.db import connection, transaction

from catalog.audit import Change, record
from dispatch import queue
from dispatch.services import raise_alerts
from dispatch.services.recount import RECOUNT

# By an index, and without a lock: what differs here may have moved meanwhile, and is counted again under one.
_DIFFERING = """
SELECT line.id FROM dispatch_line AS line
LEFT JOIN (SELECT line_id, count(*) AS jobs FROM dispatch_job
           WHERE line_id IS NOT NULL GROUP BY 1) AS standing ON standing.line_id = line.id
WHERE line.waiting <> coalesce(standing.jobs, 0)
UNION
SELECT min(line.id) FROM dispatch_line AS line
JOIN dispatch_tenantqueue AS tenant ON tenant.id = line.tenant_id
GROUP BY tenant.id HAVING tenant.waiting <> sum(line.waiting)"""
_COUNTS = """
SELECT line.waiting, (SELECT count(*) FROM dispatch_job WHERE line_id = line.id),
       tenant.id, tenant.waiting, customer.public_id, tenant.service_class
FROM dispatch_line AS line JOIN dispatch_tenantqueue AS tenant ON tenant.id = line.tenant_id
JOIN billing_customer AS customer ON customer.id = tenant.customer_id WHERE line.id = %s"""
_RIGHT_LINE = """
UPDATE dispatch_line SET waiting = %(jobs)s, is_active = %(jobs)s > 0,
    watermark_at = coalesce((SELECT min(queue_at) FROM dispatch_job WHERE line_id = %(line)s), watermark_at)
WHERE id = %(line)s"""
_RIGHT_TENANT = """
UPDATE dispatch_tenantqueue AS tenant
SET waiting = (SELECT coalesce(sum(waiting), 0) FROM dispatch_line WHERE tenant_id = tenant.id)
WHERE id = %s RETURNING waiting"""


def right_queue(now: datetime) -> list[str]:
    """What was corrected, by `customer:public id`."""
    with connection.cursor() as cursor:
        cursor.execute(_DIFFERING)
        lines = sorted(line for (line,) in cursor.fetchall())
    return [subject for line in lines if (subject := _right_line(line, now))]


def _right_line(line: int, now: datetime) -> str:
    """Nobody comes or goes while the rows are locked: to be counted, a job has to lock them."""
    with transaction.atomic(), connection.cursor() as cursor:
        queue.lock_lines([line])
        cursor.execute(_COUNTS, [line])
        counted, jobs, tenant, of_tenant, customer, service_class = cursor.fetchone()
        cursor.execute(_RIGHT_LINE, {"jobs": jobs, "line": line})
        cursor.execute(_RIGHT_TENANT, [tenant])
        (right_of_tenant,) = cursor.fetchone()
        before, after = {"line": counted, "queue": of_tenant}, {"line": jobs, "queue": right_of_tenant}
        if before == after:
            return ""
        subject = f"customer:{customer}"
        raise_alerts.queue_drift(subject, service_class, stored=before, counted=after, now=now)
        record(RECOUNT, Change("correct queue", subject, before, after), now)
    return subject
