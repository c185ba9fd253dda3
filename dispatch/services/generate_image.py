"""Makes an image while its customer waits: the request's own thread selects, reserves, calls and answers.

Nothing here is special but the waiting: attempt, round, lease, evidence and books are written by the services
that a worker uses. If this thread dies, its rows are found like a dead worker's, and its job by its key."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.db import transaction

from billing import ledger
from billing.authentication import Caller
from billing.errors import InsufficientCredit
from catalog.hashing import document_hash
from dispatch.admission import draft_job
from dispatch.customer_slots import Overtaken, in_flight
from dispatch.errors import DispatchError, ModelNotPublished, NoCapacity, NothingAvailable
from dispatch.idempotency import bind, earlier_job, stored_or_earlier
from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import Attempt, Job
from dispatch.services import raise_alerts
from dispatch.services.advance import end_job
from dispatch.services.answer_image import ImageAnswer, Waiting, answer_image
from dispatch.services.look_at_job import Look, Seen
from dispatch.services.place_at_once import place_at_once
from dispatch.services.submit import submit
from dispatch.words import customer_error

logger = logging.getLogger(__name__)
A = AttemptState
IMAGES = "images"  # the call that a key is scoped to
MOST_ATTEMPTS = 2
USUAL_WHILE_S = 15  # half of a circuit's first cooldown


def generate_image(
    caller: Caller,
    body: Mapping[str, Any],
    idempotency_key: str | None,
    request_id: str,
    waiting: Waiting,
) -> ImageAnswer:
    """The first answer again, byte for byte, where the key was used before; a request that comes while the
    first is in progress waits for it.

    Raises what `dispatch.errors` lists, NoCapacity and NothingAvailable among them, or InsufficientCredit:
    nothing is stored then, the key is free."""
    body_hash = document_hash(body)

    def find() -> Job | None:
        return earlier_job(caller, IMAGES, idempotency_key, body_hash)

    def admit() -> tuple[Job, bool]:
        now = waiting.clock()
        draft = _drafted(caller, body, now)
        bind(draft, IMAGES, idempotency_key, body_hash)
        return _admitted(caller, draft, find, now)

    job, is_mine = find(), False
    if job is None:
        try:
            job, is_mine = admit()
        except (DispatchError, InsufficientCredit):
            job = find()  # the first request by the key may be what stands in the way
            if job is None:
                raise
    if is_mine:
        _execute(job, waiting.clock)
    return answer_image(job, request_id, waiting, is_mine)


def _drafted(caller: Caller, body: Mapping[str, Any], now: datetime) -> Job:
    """A job without a queue: its dispatch deadline is the end of the request, and is the scan's only look."""
    job = draft_job(caller, body, now, modality="image")
    policy = job.public_model.policy.parsed
    total_s = min(policy.sync_total_timeout_s, policy.dispatch_deadline_s)
    job.synchronous = True
    job.dispatch_deadline_at = now + timedelta(seconds=total_s)
    if caller.customer.balance_micros < job.reserved_micros:  # told before any slot is looked at
        raise InsufficientCredit(job.reserved_micros, caller.customer.currency)
    return job


def _admitted(caller: Caller, draft: Job, find: Callable[[], Job | None], now: datetime) -> tuple[Job, bool]:
    """Stored with its attempt and its slot, or not at all."""
    seen: list[Look] = []

    def reserve() -> None:
        ledger.reserve(caller.customer, draft.public_id, draft.reserved_micros, now)

    def store() -> Job:
        _refuse_at_limit(caller)
        draft.save(force_insert=True)
        try:
            look = place_at_once(draft, now, reserve)
        except Overtaken as error:
            raise _at_limit(caller) from error
        seen.append(look)
        if look.seen is Seen.CLOSED:
            raise ModelNotPublished(f"{draft.public_model.slug} is being changed. Try again later.", "model")
        if look.seen is Seen.WAITS:
            raise (
                NoCapacity()
                if look.outcome == "waiting_capacity"
                else NothingAvailable(_opens_in_s(look, now))
            )
        return draft

    try:
        return stored_or_earlier(store, find)
    except (NoCapacity, NothingAvailable):
        for look in seen:
            _tell_operators(draft, look, now)
        raise


def _refuse_at_limit(caller: Caller) -> None:
    """Before anything is looked at; what comes meanwhile is counted when the slot is taken."""
    running = in_flight({caller.customer.pk}).get(caller.customer.pk, 0)
    if running >= caller.customer.max_in_flight:
        raise _at_limit(caller)


def _at_limit(caller: Caller) -> NoCapacity:
    most = caller.customer.max_in_flight
    return NoCapacity(f"{most} jobs may run of this account at once, and as many do.")


def _opens_in_s(look: Look, now: datetime) -> int:
    """Until the first pause that a provider asked for ends; else a usual while."""
    if look.inputs is None:
        return USUAL_WHILE_S
    inputs = look.inputs
    moments = [each.not_before for each in (*inputs.channels.values(), *inputs.supplies.values())]
    moments += [each.not_before for each in inputs.groups.values()]
    waits = [(moment - now).total_seconds() for moment in moments if moment is not None]
    return min((ceil(wait) for wait in waits if wait > 0), default=USUAL_WHILE_S)


def _tell_operators(draft: Job, look: Look, now: datetime) -> None:
    """Nothing of the job is kept; what its selection found out about the model is."""
    if look.decision is None:
        return
    logger.info(
        "No supply could take an image at once: %s",
        look.outcome,
        extra={"model": draft.public_model.slug, "request_hash": draft.request_hash},
    )
    with transaction.atomic():
        raise_alerts.of_model(draft.public_model.slug, look.decision.alerts, {}, now)


def _execute(job: Job, clock: Callable[[], datetime]) -> None:
    """Sends the attempt, and the one that may come after it."""
    for _ in range(MOST_ATTEMPTS):
        attempt = _ready_attempt(job)
        if attempt is None:
            return
        submit([attempt], clock, until=job.dispatch_deadline_at)
        _place_again(job, clock())


def _ready_attempt(job: Job) -> int | None:
    return Attempt.objects.filter(job=job, state=A.READY).values_list("pk", flat=True).first()


def _place_again(job: Job, now: datetime) -> None:
    """One transparent switch, where the retry rule left the job `dispatching`; at once, or never."""
    with transaction.atomic():
        locked = (
            Job.objects.select_for_update(of=("self",))
            .select_related("customer", "api_key__customer", "public_model__policy")
            .get(pk=job.pk)
        )
        last = locked.attempts.order_by("-number").first()
        if locked.state != JobState.DISPATCHING or last is None or last.state != A.FAILED:
            return
        look = place_at_once(locked, now)
        if look.seen in (Seen.WAITS, Seen.CLOSED):
            end_job(locked, customer_error(JobState.FAILED, last, access_revoked=False), now)
