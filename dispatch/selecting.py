"""From a job and the facts of a scan to the router's frozen input, and what to make of `no_candidate`."""

from collections.abc import Mapping
from datetime import datetime

from catalog.shape import shape_of
from dispatch.live_catalogue import ServedModel
from dispatch.models import Attempt, Job
from dispatch.routing import types as routing
from dispatch.routing.reasons import PERMANENT
from dispatch.selection_facts import SelectionFacts


def inputs_for(
    job: Job,
    model: ServedModel,
    facts: SelectionFacts,
    selection_number: int,
    compile_refusals: Mapping[str, str],
    now: datetime,
) -> routing.RoutingInput:
    """Everything that the selection of this job's next attempt depends on; a draft has had none."""
    attempts = list(job.attempts.all()) if job.pk else []
    return routing.RoutingInput(
        now=now,
        model=model.model,
        policy=model.policy,
        policy_version=model.policy_version,
        shape=shape_of(job.modality, job.request),
        candidates=model.candidates,
        channels=facts.channels(model),
        supplies=facts.supplies(model),
        groups=facts.groups(model),
        statistics=facts.statistics,
        demands=demands_of(job),
        job=routing.Job(
            tried=frozenset(attempt.supply.slug for attempt in attempts),
            spent_micros=sum(_spent(attempt) for attempt in attempts),
            selection_number=selection_number,
            attempt=len(attempts) + 1,
        ),
        refusals=facts.refusals(job, model, now),
        rates=model.rates,
        rate_versions=model.rate_versions,
        compile_refusals=compile_refusals,
        request_hash=job.request_hash,
    )


def demands_of(job: Job) -> routing.Demands:
    """The customer's ceiling counts here only where no sale price was held against it at admission."""
    request = job.request
    return routing.Demands(
        degradation=request.get("degradation"),
        max_cost_micros=None if job.reserved_micros else job.max_cost_micros,
        strict_model=request.get("routing_mode") == "strict_model",
        regions=frozenset(request.get("regions") or ()),
    )


def _spent(attempt: Attempt) -> int:
    """Settled, or expected while unsettled; an attempt that was never accepted cost nothing."""
    if attempt.cost_micros is not None:
        return attempt.cost_micros
    return attempt.quote_micros if attempt.accepted_at is not None else 0


def is_hopeless(decision: routing.Decision) -> bool:
    """Whether waiting can't help: nobody was found, and each reason stays as long as the catalogue does."""
    return decision.outcome == "no_candidate" and all(
        finding.reason in PERMANENT for finding in decision.findings
    )
