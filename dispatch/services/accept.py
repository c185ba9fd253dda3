"""Takes a customer's job: validates, reserves credit, stores, rings the dispatcher; one transaction."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from billing import ledger
from billing.authentication import Caller
from catalog.hashing import document_hash
from catalog.rows import insert_new
from dispatch import queue
from dispatch.admission import draft_job
from dispatch.errors import DispatchError, QueueFull
from dispatch.idempotency import bind, earlier_job
from dispatch.models import Job
from dispatch.representation import job_as_json
from dispatch.requests import AUTO
from dispatch.ringing import wake

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

    def earlier() -> Acceptance | None:
        job = earlier_job(caller, JOBS, idempotency_key, body_hash)
        return None if job is None else Acceptance(job, job.first_answer, is_new=False)

    # The insert finds a used key without a question of its own; a choice among models costs more than one.
    if AUTO in (body.get("routing_mode"), body.get("model")) and (answered := earlier()):
        return answered
    try:
        job = draft_job(caller, body, now)
    except DispatchError:  # which may not have been so when the key was used
        if answered := earlier():
            return answered
        raise
    bind(job, JOBS, idempotency_key, body_hash)
    with transaction.atomic(savepoint=False):
        if _is_stored(caller, job, now):
            return Acceptance(job, job.first_answer, is_new=True)
    answered = earlier()
    if answered is None:
        raise IntegrityError(f"{job.public_id} is refused by a constraint that is not its key's")
    return answered


def _is_stored(caller: Caller, job: Job, now: datetime) -> bool:
    """False, and no job of it is stored, where the key has one."""
    job.first_answer = json.dumps(job_as_json(job, []), ensure_ascii=False)
    queue.take_place(job, now)
    if not insert_new(job):
        return False
    ledger.reserve(caller.customer, job.public_id, job.reserved_micros, now)
    _refuse_when_queue_is_full(caller, waiting=queue.enter(job))
    wake("dispatch.tasks.scan_now", cluster="control")
    return True


def _refuse_when_queue_is_full(caller: Caller, waiting: int) -> None:
    """Whoever is refused has left nothing behind: what was stored goes with the transaction."""
    limit = caller.customer.max_queued
    if waiting >= limit:
        raise QueueFull(f"This account has {limit} jobs waiting, its limit. Try again when some have begun.")
