"""The money and the evidence at the end of attempts and of jobs; called inside the moves' transaction."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import prefetch_related_objects

from billing import ledger
from billing.ledger import ProviderCost, Settlement
from billing.reported import Cost, reported_cost
from billing.repository import rates_in_force
from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import Attempt, Job, ProviderJob
from dispatch.moves import Move
from dispatch.pricing import NoPrice, sale_price_micros
from dispatch.representation import degradation_of
from dispatch.services import raise_alerts
from health.memory import place_of
from health.services.record_evidence import AttemptEvidence, record_evidence
from health.services.record_refusal import record_refusal
from health.services.settle_probes import settle_probes

A = AttemptState
_ENDS_AT_PROVIDER = (A.GENERATED, A.FAILED, A.CANCELLED, A.ABANDONED)


@dataclass(frozen=True, slots=True)
class End:
    """What a move says about the provider's bill and about health. Most moves say neither."""

    attempt: Attempt
    move: Move
    cost: Cost | None
    gives_evidence: bool

    def columns(self, now: datetime) -> dict[str, Any]:
        """Of the attempt's row."""
        cost = {} if self.cost is None else {"cost_micros": self.cost.micros}
        return cost | ({"evidence_at": now} if self.gives_evidence else {})


def ends_of(wishes: Sequence[tuple[Attempt, Move]], now: datetime) -> list[End]:
    """In the order of the wishes; before anything of them is written."""
    charged = [attempt for attempt, move in wishes if _is_charged(attempt, move)]
    prefetch_related_objects(charged, "cost_rule_version")
    return [
        End(attempt, move, _final_cost(attempt, move, now), _gives_evidence(attempt, move))
        for attempt, move in wishes
    ]


def record_ends(ends: Sequence[End], now: datetime) -> None:
    """Books what moves said about the providers' bills, about health, and about contents."""
    _book_provider_costs(ends, now)
    if evidence := [_evidence(end) for end in ends if end.gives_evidence]:
        record_evidence(evidence, now)
    _remember_refusals([end for end in ends if end.move.to in _ENDS_AT_PROVIDER], now)
    for end in ends:
        if end.move.error is not None and end.move.error.code == "unsupported_capability":
            raise_alerts.capability_mismatch(end.attempt, now)
        if end.cost is not None and end.cost.doubt:
            raise_alerts.cost_in_doubt(end.attempt, end.cost, now)
        if end.move.to is A.SUCCEEDED and _price(end.attempt.job, end.attempt) is None:
            raise_alerts.sale_price_missing(end.attempt.job, now)


def _gives_evidence(attempt: Attempt, move: Move) -> bool:
    """Once for each attempt: at its failure, when it is generated, or when its submission became unknown."""
    return attempt.evidence_at is None and move.to in (A.GENERATED, A.FAILED, A.SUBMISSION_UNCERTAIN)


def _evidence(end: End) -> AttemptEvidence:
    attempt = end.attempt
    return AttemptEvidence(
        attempt=attempt.public_id,
        channel_id=attempt.channel_id,
        supply_id=attempt.supply_id,
        channel_epoch=attempt.channel_epoch,
        supply_epoch=attempt.supply_epoch,
        error=end.move.error,
    )


def _remember_refusals(ends: Sequence[End], now: datetime) -> None:
    """Only a provider's own refusal counts; an attempt whose end is unknown keeps the probe it may hold."""
    unrefused: dict[str, bool] = {}
    for end in sorted(ends, key=lambda end: end.attempt.job.content_fingerprint):  # as locks are taken
        attempt, error = end.attempt, end.move.error
        content = attempt.job.content_fingerprint
        if error is not None and error.category == "content" and content:
            record_refusal(content, place_of(attempt.supply), attempt.public_id, now)
        else:
            unrefused[attempt.public_id] = end.move.to is A.GENERATED
    settle_probes(unrefused, now)


def _book_provider_costs(ends: Sequence[End], now: datetime) -> None:
    accepted = [end.attempt for end in ends if end.move.to is A.ACCEPTED]
    ledger.expect_costs(
        [provider_cost(attempt, attempt.quote_micros, _delivered(attempt.job)) for attempt in accepted], now
    )
    ledger.settle_costs(
        [
            provider_cost(
                end.attempt,
                end.cost.micros,
                _delivered(end.attempt.job) | end.cost.as_details(),
                platform_loss=end.move.to is A.ABANDONED,
            )
            for end in ends
            if end.cost is not None
        ],
        now,
    )


def provider_cost(
    attempt: Attempt, micros: int, details: Mapping[str, Any], platform_loss: bool = False
) -> ProviderCost:
    """`micros`: the cost, or how much it changes by; in the currency of its quote."""
    return ProviderCost(
        attempt.public_id,
        attempt.supply_id,
        attempt.cost_rule_version_id,
        micros,
        attempt.quote_currency,
        platform_loss,
        details,
    )


def book_loss(attempt: Attempt, now: datetime) -> None:
    """What was taken as never created, and is charged all the same: our loss, by the quote. Once; nothing
    where a cost stands, as that of an attempt that was given up. The caller has locked the job."""
    cost, job = attempt.quote_micros, attempt.job
    if not Attempt.objects.filter(pk=attempt.pk, cost_micros=None).update(cost_micros=cost):
        return
    Job.objects.filter(pk=job.pk).update(provider_cost_micros=job.provider_cost_micros + cost)
    why = {"why": "the provider accepted what had been taken as never created"}
    ledger.settle_costs([provider_cost(attempt, cost, why, platform_loss=True)], now)


def _is_charged(attempt: Attempt, move: Move) -> bool:
    """Whether the provider's rule and its report say what the end costs."""
    ended = move.to in (A.FAILED, A.CANCELLED) and attempt.accepted_at is not None
    return attempt.cost_micros is None and (move.to is A.GENERATED or ended)


def _final_cost(attempt: Attempt, move: Move, now: datetime) -> Cost | None:
    """None while the end is open or when nothing was ever sent, and where a cost stands already.

    What nobody could clear up is taken as charged: the worse case, until a bill says otherwise."""
    if move.to is A.ABANDONED and attempt.cost_micros is None:
        return Cost(attempt.quote_micros, "rule")
    if _is_charged(attempt, move):
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


def charge_of(job: Job, last: Attempt | None, end: JobState) -> int:
    """What the customer pays where the job ends so with its last attempt."""
    return _price(job, last) or 0 if end is JobState.SUCCEEDED else 0


def settle_jobs(ended: Sequence[tuple[Job, Attempt | None]], now: datetime) -> None:
    """Gives customers' reserves back and charges what was delivered, once; each with its last attempt."""
    prefetch_related_objects([job for job, _ in ended], "customer")
    ledger.settle_credit(
        [
            Settlement(
                customer_id=job.customer_id,
                currency=job.customer.currency,
                job=job.public_id,
                reserved_micros=job.reserved_micros,
                charge_micros=job.charged_micros,
                note=f"job {job.state}",
                details=_delivered(job),
                attempt=last.public_id if last else "",
            )
            for job, last in ended
        ],
        now,
    )


def _price(job: Job, last: Attempt | None) -> int | None:
    """By the prices that the job was admitted under, a later change concerns later jobs, and by what was
    sent of its inputs. None where a lesser profile has no price there: nobody pays the full one for it."""
    if job.actual_profile in ("", job.requested_profile):
        return job.reserved_micros
    model = copy(job.public_model)
    model.price = model.revisions.get(number=job.model_revision).document["model"]["price"]
    sent = (last.sent_request if last else None) or job.request
    try:
        price = sale_price_micros(model, sent, job.actual_profile, job.customer.currency)
    except NoPrice:
        return None
    return min(price, job.reserved_micros)


def _delivered(job: Job) -> dict[str, Any]:
    """What an entry in either book says of a result that is not what was asked for; else nothing."""
    said = degradation_of(job)
    return said if said["degraded"] else {}
