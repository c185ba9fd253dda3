"""A job whose first attempt failed, and that another supply delivered in part."""

from datetime import datetime, timedelta

from catalog.models import Supply
from dispatch.models import Job
from tests.factories import AttemptFactory, JobFactory, ProviderEventFactory, SelectionRoundFactory
from tests.snapshots import recorded, recorded_switch


def switched_job(first: Supply, second: Supply, start: datetime) -> Job:
    job = JobFactory(state="running", created_at=start)
    failed = AttemptFactory(
        job=job,
        supply=first,
        selection_round=SelectionRoundFactory(job=job, snapshot=recorded()),
        state="failed",
        error_category="capacity",
        error_code="overloaded",
        error_message="The service is overloaded.",
        accepted_at=job.created_at + timedelta(seconds=5),
    )
    delivered = AttemptFactory(
        job=job,
        number=2,
        supply=second,
        selection_round=SelectionRoundFactory(job=job, attempt_number=2, snapshot=recorded_switch()),
        state="succeeded",
        created_at=start + timedelta(seconds=125),
    )
    ProviderEventFactory(attempt=failed, raw={"id": "task-1"})
    Job.objects.filter(pk=job.pk).update(
        state="succeeded",
        adopted_attempt=delivered,
        finished_at=delivered.finished_at,
        actual_profile="900",
        dropped_inputs=["reference_videos"],
    )
    return job
