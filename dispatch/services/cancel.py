"""A customer's wish to cancel: immediate before submission, a request to the provider after."""

from datetime import datetime

from django.db import transaction
from django_q.tasks import async_task

from catalog.retrying import retried_as_victim
from dispatch.errors import AlreadyFinished
from dispatch.lifecycle import FINAL_JOB_STATES, AttemptState
from dispatch.models import Attempt, Job
from dispatch.moves import Move
from dispatch.repository import locked_attempt
from dispatch.services.advance import advance, refresh_job

A = AttemptState
_CANCELLABLE_AT_PROVIDER = (A.ACCEPTED, A.PROVIDER_QUEUED, A.RUNNING)


@retried_as_victim
def cancel(job_id: int, now: datetime) -> Job:
    """The job as it stands after the wish. Raises AlreadyFinished; repeating a wish changes nothing that the
    first one has changed."""
    with transaction.atomic():
        job = (
            Job.objects.select_for_update(of=("self",))
            .select_related("customer", "public_model__policy")
            .get(pk=job_id)
        )
        if job.state in FINAL_JOB_STATES:
            raise AlreadyFinished(f"This job is already {job.state}; a finished job can't be cancelled.")
        if job.cancel_requested_at is None:
            refresh_job(job, now, cancel_requested_at=now)
        _tell_attempt(job, now)
        job.refresh_from_db()
    return job


def _tell_attempt(job: Job, now: datetime) -> None:
    last = job.attempts.order_by("-number").values_list("pk", flat=True).first()
    if last is None:
        return
    attempt = locked_attempt(last)  # a poll that is claimed or recorded meanwhile must not lose the wish
    if attempt.state == A.READY:
        advance(Move(attempt.pk, attempt.state_version, A.CANCELLED), now)
    elif attempt.state in _CANCELLABLE_AT_PROVIDER:
        request_cancel(attempt, now)


def request_cancel(attempt: Attempt, now: datetime) -> None:
    """`cancel_requested`, and a task that asks the provider; its real end wins."""
    moved = advance(Move(attempt.pk, attempt.state_version, A.CANCEL_REQUESTED, {"next_look_at": now}), now)
    if moved is not None:
        async_task("dispatch.tasks.cancel_at_provider", attempt.pk, cluster="traffic")
