"""Takes a customer's job: validates, reserves credit, stores, rings the dispatcher; one transaction."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django_q.tasks import async_task

from billing import ledger
from billing.authentication import Caller
from catalog.capability import parse_capability
from catalog.hashing import document_hash
from catalog.ids import public_id
from catalog.models import PublicModel, RefusalIsolation
from dispatch.errors import (
    ContentRefused,
    CostOverLimit,
    IdempotencyConflict,
    InvalidRequest,
    ModelNotPublished,
    QueueFull,
    UnknownModel,
)
from dispatch.fingerprint import content_fingerprint, fingerprint_key
from dispatch.inputs.resolving import resolved
from dispatch.lifecycle import JobState
from dispatch.live_catalogue import live_catalogue
from dispatch.models import Job
from dispatch.pricing import NoPrice, sale_price_micros
from dispatch.refusals import all_open_at
from dispatch.representation import job_as_json
from dispatch.requests import defaults_of, normalized
from dispatch.services.count_refused import count_refused
from health.memory import matching_refusals

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
    if idempotency_key is not None:
        earlier = _earlier(caller, idempotency_key, body_hash)
        if earlier is not None:
            return earlier
    wanted = resolved(body, caller.customer)
    try:
        with transaction.atomic():
            job = _store(caller, wanted, idempotency_key, body_hash, now)
    except ModelNotPublished:
        count_refused(body["model"])
        raise
    except IntegrityError:
        # Two posts with one key at once: the other was first, and its answer is the answer.
        earlier = _earlier(caller, idempotency_key, body_hash) if idempotency_key else None
        if earlier is None:
            raise
        return earlier
    return Acceptance(job, job.first_answer, is_new=True)


def _earlier(caller: Caller, key: str, body_hash: str) -> Acceptance | None:
    job = Job.objects.filter(customer=caller.customer, call=JOBS, idempotency_key=key).first()
    if job is None:
        return None
    if job.idempotency_hash != body_hash:
        raise IdempotencyConflict(
            f"This Idempotency-Key belongs to {job.public_id}, made from another request. Use a new key.",
            "Idempotency-Key",
        )
    return Acceptance(job, job.first_answer, is_new=False)


def _store(
    caller: Caller, body: Mapping[str, Any], idempotency_key: str | None, body_hash: str, now: datetime
) -> Job:
    model = open_model(caller, body["model"])
    request = _normalized(model, body)
    fingerprint = content_fingerprint(request, fingerprint_key(settings.SECRET_KEY))
    _refuse_what_was_refused(model, fingerprint, now)
    policy = model.policy.parsed()
    _refuse_when_queue_is_full(caller)
    price = _price(caller, model, request)
    _refuse_over_limit(body.get("max_cost_micros"), price)
    job = Job(
        public_id=public_id("job"),
        customer=caller.customer,
        api_key=caller.key,
        project=body.get("project", ""),
        end_user=body.get("end_user", ""),
        metadata=body.get("metadata") or {},
        public_model=model,
        model_revision=model.revision,
        modality=model.modality,
        request=request,
        request_hash=document_hash(request),
        content_fingerprint=fingerprint,
        idempotency_key=idempotency_key,
        idempotency_hash=body_hash if idempotency_key else "",
        service_class=body.get("service_class", "standard"),
        state=JobState.QUEUED,
        dispatch_deadline_at=now + timedelta(seconds=_queue_limit_s(body, policy.dispatch_deadline_s)),
        next_action_at=now,
        requested_profile=model.profile,
        max_cost_micros=body.get("max_cost_micros"),
        reserved_micros=price,
        created_at=now,
    )
    job.first_answer = json.dumps(job_as_json(job, []), ensure_ascii=False)
    job.save(force_insert=True)
    ledger.reserve(caller.customer, job.public_id, price, now)
    async_task("dispatch.tasks.scan_now", cluster="control")
    return job


def open_model(caller: Caller, slug: str) -> PublicModel:
    """The published model of that name that this customer's group may use."""
    model = PublicModel.objects.select_related("policy").filter(slug=slug).first()
    group = caller.customer.group.slug if caller.customer.group else None
    if model is None or (model.allowed_groups and group not in model.allowed_groups):
        raise UnknownModel(f"There is no model {slug!r} for this account.", "model")
    if not (model.enabled and model.published):
        raise ModelNotPublished(
            f"{slug} is being changed and takes no jobs right now. Try again later.", "model"
        )
    return model


def _normalized(model: PublicModel, body: Mapping[str, Any]) -> dict[str, Any]:
    limits = parse_capability(model.modality, model.parameters)
    return normalized(model.modality, body, limits, model.degradation, defaults_of(model.parameters))


def _queue_limit_s(body: Mapping[str, Any], most_s: int) -> int:
    return min(body.get("max_queue_s") or most_s, most_s)


def _refuse_when_queue_is_full(caller: Caller) -> None:
    limit = caller.customer.max_queued
    waiting = Job.objects.filter(
        customer=caller.customer, state__in=(JobState.QUEUED, JobState.DISPATCHING)
    ).order_by()[: limit + 1]
    if waiting.count() >= limit:
        raise QueueFull(f"This account has {limit} jobs waiting, its limit. Try again when some have begun.")


def _refuse_what_was_refused(model: PublicModel, fingerprint: str, now: datetime) -> None:
    """A model that closes on a refusal answers for its providers while none of them may be asked again."""
    if model.refusal_isolation != RefusalIsolation.MODEL:
        return
    catalogue = live_catalogue(now)
    supplies = {candidate.supply.id for candidate in catalogue.models[model.pk].candidates}
    places = [catalogue.supplies[supply].refusal_place for supply in supplies]
    matches = matching_refusals([fingerprint], places, now).get(fingerprint)
    if not matches:
        return
    opens_at = all_open_at([match.standing for match in matches.values()])
    if opens_at is None or now < opens_at:
        raise ContentRefused(opens_at)


def _price(caller: Caller, model: PublicModel, request: Mapping[str, Any]) -> int:
    try:
        return sale_price_micros(model, request, model.profile, caller.customer.currency)
    except NoPrice as error:
        raise InvalidRequest(f"This request can't be sold: {error}.", "model") from error


def _refuse_over_limit(limit_micros: int | None, price_micros: int) -> None:
    if limit_micros is not None and price_micros > limit_micros:
        raise CostOverLimit("The price of this request is above its max_cost.", "max_cost")
