"""The money and the evidence at the end of an attempt and of a job; called inside the move's transaction."""

from collections.abc import Mapping
from copy import copy
from datetime import datetime
from typing import Any

from billing import ledger
from billing.reported import Cost, reported_cost
from billing.repository import rates_in_force
from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import Attempt, Job, ProviderJob
from dispatch.moves import Move
from dispatch.pricing import sale_price_micros
from dispatch.representation import degradation_of
from dispatch.services import raise_alerts
from health.memory import place_of
from health.services.record_evidence import AttemptEvidence, record_evidence
from health.services.record_refusal import record_refusal
from health.services.settle_probe import settle_probe

A = AttemptState


def record_end(job: Job, attempt: Attempt, move: Move, now: datetime) -> None:
    """Books what the move says about the provider's bill, about health, and about the content."""
    columns = {**_book_provider_cost(job, attempt, move, now), **_give_evidence(attempt, move, now)}
    if columns:
        Attempt.objects.filter(pk=attempt.pk).update(**columns)
    _remember_refusal(job, attempt, move, now)
    if move.error is not None and move.error.code == "unsupported_capability":
        raise_alerts.capability_mismatch(attempt, now)


def _give_evidence(attempt: Attempt, move: Move, now: datetime) -> Mapping[str, Any]:
    """Once for each attempt: at its failure, when it is generated, or when its submission became unknown.
    The column that says so."""
    if attempt.evidence_at is not None or move.to not in (A.GENERATED, A.FAILED, A.SUBMISSION_UNCERTAIN):
        return {}
    attempt.evidence_at = now
    record_evidence(
        [
            AttemptEvidence(
                attempt=attempt.public_id,
                channel_id=attempt.channel_id,
                supply_id=attempt.supply_id,
                channel_epoch=attempt.channel_epoch,
                supply_epoch=attempt.supply_epoch,
                error=move.error,
            )
        ],
        now,
    )
    return {"evidence_at": now}


def _remember_refusal(job: Job, attempt: Attempt, move: Move, now: datetime) -> None:
    """Only a provider's own refusal counts; an attempt whose end is unknown keeps the probe it may hold."""
    if move.to not in (A.GENERATED, A.FAILED, A.CANCELLED, A.ABANDONED):
        return
    if move.error is not None and move.error.category == "content" and job.content_fingerprint:
        record_refusal(job.content_fingerprint, place_of(attempt.supply), attempt.public_id, now)
    else:
        settle_probe(attempt.public_id, move.to is A.GENERATED, now)


def _book_provider_cost(job: Job, attempt: Attempt, move: Move, now: datetime) -> Mapping[str, Any]:
    """In the book and at the job; the attempt's own column is left to the caller."""
    if move.to is A.ACCEPTED:
        ledger.expect_cost(
            attempt.public_id,
            attempt.supply_id,
            attempt.cost_rule_version,
            attempt.quote_micros,
            attempt.quote_currency,
            now,
            details=_delivered(job),
        )
        return {}
    found = _final_cost(attempt, move, now)
    if found is None or attempt.cost_micros is not None:
        return {}
    cost = attempt.cost_micros = found.micros
    if cost:
        job.provider_cost_micros += cost
        Job.objects.filter(pk=job.pk).update(provider_cost_micros=job.provider_cost_micros)
    ledger.settle_cost(
        attempt.public_id,
        attempt.supply_id,
        attempt.cost_rule_version,
        cost,
        attempt.quote_currency,
        now,
        platform_loss=move.to is A.ABANDONED,
        details=_delivered(job) | found.as_details(),
    )
    if found.doubt:
        raise_alerts.cost_in_doubt(attempt, found, now)
    return {"cost_micros": cost}


def book_loss(job: Job, attempt: Attempt, now: datetime) -> None:
    """What was taken as never created, and is charged all the same: our loss, by the quote. Once; nothing
    where a cost stands, as that of an attempt that was given up."""
    cost = attempt.quote_micros
    if not Attempt.objects.filter(pk=attempt.pk, cost_micros=None).update(cost_micros=cost):
        return
    Job.objects.filter(pk=job.pk).update(provider_cost_micros=job.provider_cost_micros + cost)
    ledger.settle_cost(
        attempt.public_id,
        attempt.supply_id,
        attempt.cost_rule_version,
        cost,
        attempt.quote_currency,
        now,
        platform_loss=True,
        details={"why": "the provider accepted what had been taken as never created"},
    )


def _final_cost(attempt: Attempt, move: Move, now: datetime) -> Cost | None:
    """None while the end is open or when nothing was ever sent.

    What nobody could clear up is taken as charged: the worse case, until a bill says otherwise."""
    if move.to is A.ABANDONED:
        return Cost(attempt.quote_micros, "rule")
    if move.to is A.GENERATED or (move.to in (A.FAILED, A.CANCELLED) and attempt.accepted_at is not None):
        told: ProviderJob | None = getattr(attempt, "provider_job", None)
        return cost_at_end(attempt, move.to is A.GENERATED, told.usage if told else {}, now)
    return None


def cost_at_end(attempt: Attempt, is_generated: bool, usage: Mapping[str, Any], now: datetime) -> Cost:
    """By what the provider reports, where it does; else by the rule."""
    is_charged = is_generated or not attempt.cost_rule_version.document.get("free_on_failure", True)
    rates = rates_in_force(attempt.quote_currency, now) if "cost" in usage else {}
    ratios = {code: rate.rate.as_integer_ratio() for code, rate in rates.items()}
    estimate = attempt.quote_micros if is_charged else 0
    return reported_cost(estimate, attempt.quote_currency, usage, ratios)


def settle_job(job: Job, last: Attempt | None, now: datetime) -> None:
    """Gives the customer's reserve back and charges what was delivered, once. `last`: of its attempts."""
    charge = _charge(job) if job.state == JobState.SUCCEEDED else 0
    if charge != job.charged_micros:
        Job.objects.filter(pk=job.pk).update(charged_micros=charge)
        job.charged_micros = charge
    ledger.settle_credit(
        job.customer,
        job.public_id,
        job.reserved_micros,
        charge,
        f"job {job.state}",
        now,
        details=_delivered(job),
        attempt=last.public_id if last else "",
    )


def _charge(job: Job) -> int:
    """By the prices that the job was admitted under: a later change concerns later jobs."""
    if job.actual_profile in ("", job.requested_profile):
        return job.reserved_micros
    model = copy(job.public_model)
    model.price = model.revisions.get(number=job.model_revision).document["model"]["price"]
    price = sale_price_micros(model, job.request, job.actual_profile, job.customer.currency)
    return min(price, job.reserved_micros)


def _delivered(job: Job) -> dict[str, Any]:
    """What an entry in either book says of a result that is not what was asked for; else nothing."""
    said = degradation_of(job)
    return said if said["degraded"] else {}
