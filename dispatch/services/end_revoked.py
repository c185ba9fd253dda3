"""Ends what waits in the queue under a key that does not open the door any more."""

from datetime import datetime
from typing import Final

from django.db import connection, transaction

from dispatch.models import Job
from dispatch.services.advance import end_job
from dispatch.words import ACCESS_REVOKED

BATCH: Final = 500

_UNDER_ENDED_KEYS = """
SELECT job.id FROM dispatch_line AS line
JOIN dispatch_tenantqueue AS tenant ON tenant.id = line.tenant_id
JOIN billing_customer AS customer ON customer.id = tenant.customer_id
JOIN billing_apikey AS key ON key.customer_id = tenant.customer_id
 AND (key.revoked_at IS NOT NULL OR key.expires_at <= %(now)s OR NOT customer.active)
JOIN dispatch_job AS job ON job.line_id = line.id AND job.api_key_id = key.id
WHERE line.is_active LIMIT %(most)s"""


def end_revoked(now: datetime) -> int:
    """How many it ended, at most BATCH. A scan asks each key before it starts a job under it; this is for
    those whose turn would be long in coming."""
    with connection.cursor() as cursor:
        cursor.execute(_UNDER_ENDED_KEYS, {"now": now, "most": BATCH})
        ids = [job for (job,) in cursor.fetchall()]
    return sum(_end(job, now) for job in ids)


def _end(job_id: int, now: datetime) -> bool:
    with transaction.atomic():
        waiting = Job.objects.select_for_update(of=("self",)).select_related(
            "customer", "public_model__policy"
        )
        job = waiting.filter(pk=job_id, line__isnull=False).first()
        if job is not None:
            end_job(job, ACCESS_REVOKED, now)
    return job is not None
