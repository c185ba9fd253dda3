"""A customer's Idempotency-Key: scoped to customer and call, bound by the job that is created under it."""

from collections.abc import Callable

from django.db import IntegrityError, transaction

from billing.authentication import Caller
from dispatch.errors import IdempotencyConflict
from dispatch.models import Job


def earlier_job(caller: Caller, call: str, key: str | None, body_hash: str) -> Job | None:
    """The job that the key stands for already. Raises IdempotencyConflict where another request made it."""
    if key is None:
        return None
    # What a repeated answer needs is little.
    told = Job.objects.only("public_id", "idempotency_hash", "first_answer", "first_status")
    job = told.filter(customer=caller.customer.pk, call=call, idempotency_key=key).first()
    if job is not None and job.idempotency_hash != body_hash:
        raise IdempotencyConflict(
            f"This Idempotency-Key belongs to {job.public_id}, made from another request. Use a new key.",
            "Idempotency-Key",
        )
    return job


def bind(job: Job, call: str, key: str | None, body_hash: str) -> None:
    """Writes the key into an unsaved job; the insert decides whether it was free."""
    job.call, job.idempotency_key = call, key
    job.idempotency_hash = body_hash if key else ""


def stored_or_earlier(store: Callable[[], Job], find: Callable[[], Job | None]) -> tuple[Job, bool]:
    """The job that `store` made in a transaction, and true; or the one that another request with the same
    key made at the same time, which the constraint tells us of."""
    try:
        with transaction.atomic():
            return store(), True
    except IntegrityError:
        earlier = find()
        if earlier is None:
            raise
        return earlier, False
