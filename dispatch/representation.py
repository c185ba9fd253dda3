"""A job as customers see it: no supplier, no channel, no priority, no provider's words."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from billing.money import written
from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import Asset, Attempt, Job
from dispatch.waiting import CustomerQueue
from dispatch.words import waiting_reason

_DELAYED = frozenset({AttemptState.SUBMISSION_UNCERTAIN, AttemptState.OUTCOME_UNCERTAIN})
_JUST_ADMITTED = CustomerQueue()


def job_as_json(
    job: Job,
    outputs: Iterable[Asset],
    attempt: Attempt | None = None,
    queue: CustomerQueue | None = _JUST_ADMITTED,
) -> dict[str, Any]:
    """The body of `GET /api/v1/jobs/{id}/`. `attempt`: the last one; `queue`: why it waits, if it is told."""
    body: dict[str, Any] = {
        "id": job.public_id,
        "object": "job",
        "model": job.public_model.slug,
        "modality": job.modality,
        "state": job.state,
        "created_at": time_as_json(job.created_at),
        "started_at": time_as_json(job.started_at),
        "finished_at": time_as_json(job.finished_at),
        "project": job.project,
        "end_user": job.end_user,
        "metadata": job.metadata,
        **degradation_of(job),
        "cost": _cost(job),
        "outputs": [_output(job, asset) for asset in outputs],
        "error": {"code": job.error_code, "message": job.error_message} if job.error_code else None,
    }
    if queue is not None and not job.synchronous and job.state in (JobState.QUEUED, JobState.DISPATCHING):
        body["queue"] = _queue(job, queue)
    if attempt is not None and job.finished_at is None:
        body["delayed"] = attempt.state in _DELAYED
        body["progress"] = _progress(attempt)
    return body


def degradation_of(job: Job) -> dict[str, Any]:
    """The four fields that a job's answer and its entries in both books say."""
    return {
        "degraded": bool(job.actual_profile) and job.actual_profile != job.requested_profile,
        "requested_profile": job.requested_profile,
        "actual_profile": job.actual_profile or None,
        "dropped_inputs": job.dropped_inputs,
    }


def _queue(job: Job, queue: CustomerQueue) -> dict[str, Any]:
    reason, message = waiting_reason(queue.code)
    return {
        "place": queue.place,
        "reason": reason,
        "message": message,
        "not_before": time_as_json(queue.until),
        "deadline": time_as_json(job.dispatch_deadline_at),
    }


def _cost(job: Job) -> dict[str, Any]:
    return {
        "currency": job.customer.currency,
        "reserved": written(0 if job.finished_at else job.reserved_micros),
        "charged": written(job.charged_micros),
    }


def _output(job: Job, asset: Asset) -> dict[str, Any]:
    return {
        "id": asset.public_id,
        "url": f"/api/v1/jobs/{job.public_id}/output/{asset.number}/",
        "content_type": asset.content_type,
        "size_bytes": asset.size_bytes,
        "sha256": asset.sha256,
        "width": asset.width,
        "height": asset.height,
        "duration_ms": asset.duration_ms,
        "expires_at": time_as_json(asset.expires_at),
    }


def _progress(attempt: Attempt) -> float | None:
    provider_job = getattr(attempt, "provider_job", None)
    return None if provider_job is None else provider_job.progress


def time_as_json(at: datetime | None) -> str | None:
    """RFC 3339, in UTC."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")
