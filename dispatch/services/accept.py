"""Takes a customer's job: validates, reserves credit, stores, rings the dispatcher; one transaction."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_q.tasks import async_task

from billing import ledger
from billing.authentication import Caller
from catalog.hashing import document_hash
from dispatch import queue
from dispatch.admission import draft_job
from dispatch.errors import QueueFull
from dispatch.idempotency import bind, earlier_job, stored_or_earlier
from dispatch.models import Job
from dispatch.representation import job_as_json

JOBS = "jobs"  # the call that a key is scoped to


@dataclass(frozen=True)
class Acceptance:
    """`answer` is the body to send: the first answer again, byte for byte, when the key was used before."""

    job: Job
    answer: str
    is_new: bool


def accept(caller: Caller, body: Mapping[str, Any], idempotency_key: str | None, now: datetime) -> Acceptance:
    """Raises what `dispatch.errors` lists, or InsufficientCredit: nothing is stored then, the key is free."""
    body_hash = document_hash(body)

    def find() -> Job | None:
        return earlier_job(caller, JOBS, idempotency_key, body_hash)

    earlier = find()
    if earlier is not None:
        return Acceptance(earlier, earlier.first_answer, is_new=False)
    job = draft_job(caller, body, now)
    bind(job, JOBS, idempotency_key, body_hash)
    stored, is_new = stored_or_earlier(lambda: _store(caller, job, now), find)
    return Acceptance(stored, stored.first_answer, is_new)


def _store(caller: Caller, job: Job, now: datetime) -> Job:
    job.first_answer = json.dumps(job_as_json(job, []), ensure_ascii=False)
    queue.take_place(job, now)
    job.save(force_insert=True)
    ledger.reserve(caller.customer, job.public_id, job.reserved_micros, now)
    _refuse_when_queue_is_full(caller, waiting=queue.enter(job))
    async_task("dispatch.tasks.scan_now", cluster="control")
    return job


def _refuse_when_queue_is_full(caller: Caller, waiting: int) -> None:
    """Whoever is refused has left nothing behind: what was stored goes with the transaction."""
    limit = caller.customer.max_queued
    if waiting >= limit:
        raise QueueFull(f"This account has {limit} jobs waiting, its limit. Try again when some have begun.")
