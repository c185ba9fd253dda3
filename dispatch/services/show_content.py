"""Shows a person what a customer wrote. It is personal data: that somebody looked is kept."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from catalog.audit import Actor, Change, record
from dispatch.models import Job
from health.models import RefusalRecord


def show_content(
    job: Job, *, actor: Actor, now: datetime, refusal: RefusalRecord | None = None
) -> Mapping[str, Any]:
    """The job's request; `refusal`: on whose page it is looked at, where it is not the job's own."""
    seen = Change("show content", f"job:{job.public_id}")
    if refusal is not None:
        seen = Change("show content", f"refusal:{refusal.public_id}", after={"job": job.public_id})
    record(actor, seen, now)
    return job.request
