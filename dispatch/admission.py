"""From a customer's request to the job as it would be stored: everything that can refuse it, and no write.

A named model is taken as it is. With routing mode `auto` every permitted model of the modality drafts its
own job, and the best offer wins."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from billing.authentication import Caller
from catalog.hashing import document_hash
from catalog.ids import public_id
from catalog.models import PublicModel, RefusalIsolation
from catalog.policy import Policy
from dispatch.errors import (
    ContentRefused,
    CostOverLimit,
    DispatchError,
    InvalidRequest,
    ModelNotPublished,
    UnknownModel,
)
from dispatch.fingerprint import content_fingerprint, fingerprint_key
from dispatch.inputs.resolving import resolved
from dispatch.lifecycle import JobState
from dispatch.live_catalogue import live_catalogue
from dispatch.model_offers import choose_model
from dispatch.models import Job
from dispatch.pricing import NoPrice, sale_price_micros
from dispatch.refusals import all_open_at
from dispatch.requests import AUTO, defaults_of, is_auto, modality_of, normalized
from health.memory import matching_refusals


def draft_job(caller: Caller, body: Mapping[str, Any], now: datetime, modality: str | None = None) -> Job:
    """An unsaved job. `modality`: the only one that this call takes.

    Raises what `dispatch.errors` lists."""
    body = resolved(body, caller.customer)
    if is_auto(body):
        return _best_draft(caller, body, modality or _modality(caller, body, now), now)
    model = open_model(caller, body["model"], now)
    if modality is not None and model.modality != modality:
        raise InvalidRequest(f"{model.slug} makes {model.modality}s; this call makes {modality}s.", "model")
    return _draft(caller, model, body, now)


def open_model(caller: Caller, slug: str, now: datetime) -> PublicModel:
    """The published model of that name that this customer's group may use."""
    model = live_catalogue(now).public.get(slug)
    if model is None or not _is_permitted(caller, model):
        raise UnknownModel(f"There is no model {slug!r} for this account.", "model")
    if not (model.enabled and model.published):
        raise ModelNotPublished(
            f"{slug} is being changed and takes no jobs right now. Try again later.", "model"
        )
    return model


def _is_permitted(caller: Caller, model: PublicModel) -> bool:
    group = caller.customer.group.slug if caller.customer.group else None
    return not model.allowed_groups or group in model.allowed_groups


def _modality(caller: Caller, body: Mapping[str, Any], now: datetime) -> str:
    """Of a model that is named beside `auto`, else as the fields say."""
    named = body.get("model", AUTO)
    return modality_of(body) if named == AUTO else open_model(caller, named, now).modality


def _best_draft(caller: Caller, body: Mapping[str, Any], modality: str, now: datetime) -> Job:
    drafts: dict[str, Job] = {}
    refusals: dict[str, DispatchError] = {}
    for model in _permitted_models(caller, modality, now):
        try:
            drafts[model.slug] = _draft(caller, model, body, now)
        except (InvalidRequest, CostOverLimit, ContentRefused) as refusal:
            refusals[model.slug] = refusal
    refused = {slug: f"{refusal.code}: {refusal}" for slug, refusal in refusals.items()}
    choice, document = choose_model(drafts, refused, caller.customer.currency, now)
    if choice is None:
        raise _nobody_takes(refusals, modality)
    job = drafts[choice.slug]
    job.model_choice = document
    return job


def _permitted_models(caller: Caller, modality: str, now: datetime) -> list[PublicModel]:
    return [
        model
        for _, model in sorted(live_catalogue(now).public.items())
        if model.modality == modality and model.enabled and model.published and _is_permitted(caller, model)
    ]


def _nobody_takes(refusals: Mapping[str, DispatchError], modality: str) -> DispatchError:
    if not refusals:
        return UnknownModel(f"There is no {modality} model for this account.", "model")
    first = next(iter(refusals.values()))
    if len(refusals) == 1 or all(type(refusal) is ContentRefused for refusal in refusals.values()):
        return first
    why = " ".join(f"{slug}: {refusal}" for slug, refusal in refusals.items())
    return InvalidRequest(f"No model of this account takes this request. {why}", first.field)


def _draft(caller: Caller, model: PublicModel, body: Mapping[str, Any], now: datetime) -> Job:
    request = _normalized(model, body)
    fingerprint = content_fingerprint(request, fingerprint_key(settings.SECRET_KEY))
    _refuse_what_was_refused(model, fingerprint, now)
    price = _price(caller, model, request)
    _refuse_over_limit(body.get("max_cost_micros"), price)
    return Job(
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
        service_class=body.get("service_class", "standard"),
        state=JobState.QUEUED,
        dispatch_deadline_at=now + timedelta(seconds=_queue_limit_s(body, model.policy.parsed)),
        requested_profile=model.profile,
        max_cost_micros=body.get("max_cost_micros"),
        reserved_micros=price,
        created_at=now,
    )


def _normalized(model: PublicModel, body: Mapping[str, Any]) -> dict[str, Any]:
    return normalized(model.modality, body, model.limits, model.degradation, defaults_of(model.parameters))


def _queue_limit_s(body: Mapping[str, Any], policy: Policy) -> int:
    most_s = policy.dispatch_deadline_s
    return min(body.get("max_queue_s") or most_s, most_s)


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
