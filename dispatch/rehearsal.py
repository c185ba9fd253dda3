"""The last recorded requests of a model, routed by what would serve now: does anything break?

Slots are taken as free and circuits as closed: the question is whether the catalogue can decide."""

from datetime import datetime

from catalog.models import PublicModel
from catalog.shape import shape_of
from dispatch.compiling import Compilations
from dispatch.live_catalogue import LiveCatalogue, read_catalogue
from dispatch.models import Job
from dispatch.routing.router import route
from dispatch.routing.types import Condition, GroupCondition, RoutingInput

LAST_SELECTIONS = 50


def rehearse(model: PublicModel, now: datetime) -> tuple[int, tuple[str, ...]]:
    """How many recorded selections were routed again, and what went wrong, by job."""
    jobs = (
        Job.objects.filter(public_model=model, rounds__isnull=False).distinct().order_by("-created_at", "-id")
    )
    recorded = list(jobs[:LAST_SELECTIONS])
    if not recorded:
        return 0, ()
    catalogue = read_catalogue(now)
    problems = [
        f"{job.public_id}: {problem}" for job in recorded if (problem := _problem(job, catalogue, now))
    ]
    return len(recorded), tuple(problems)


def _problem(job: Job, catalogue: LiveCatalogue, now: datetime) -> str:
    try:
        route(_inputs(job, catalogue, now))
    except Exception as error:  # noqa: BLE001 - whatever a recorded request breaks is what is asked for
        return f"{type(error).__name__}: {error}"
    return ""


def _inputs(job: Job, catalogue: LiveCatalogue, now: datetime) -> RoutingInput:
    served = catalogue.models[job.public_model_id]
    supplies = [candidate.supply for candidate in served.candidates]
    groups = {supply.channel.group.id for supply in supplies if supply.channel.group}
    return RoutingInput(
        now=now,
        model=served.model,
        policy=served.policy,
        policy_version=served.policy_version,
        shape=shape_of(job.modality, job.request),
        candidates=served.candidates,
        channels={supply.channel.id: Condition() for supply in supplies},
        supplies={supply.id: Condition() for supply in supplies},
        groups={group: GroupCondition() for group in groups},
        rates=served.rates,
        rate_versions=served.rate_versions,
        compile_refusals=Compilations(job.request, served, catalogue),
        request_hash=job.request_hash,
    )
