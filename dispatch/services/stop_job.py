"""An operator ends a customer's job: as if the customer had asked, with who and why in the audit."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from dispatch.errors import AlreadyFinished
from dispatch.models import Job
from dispatch.services.cancel import cancel


@transaction.atomic
def stop_job(job: Job, reason: str, *, actor: Actor, now: datetime) -> bool:
    """False: it has ended, or somebody asked before; nothing was changed.

    Before submission it ends at once; what runs at a provider is asked to stop, and its real end wins."""
    try:
        if Job.objects.select_for_update(of=("self",)).get(pk=job.pk).cancel_requested_at is not None:
            return False
        cancel(job.pk, now)
    except AlreadyFinished:
        return False
    after = {"reason": reason}
    record(actor, Change("cancel job", f"job:{job.public_id}", {"state": job.state}, after), now)
    return True
