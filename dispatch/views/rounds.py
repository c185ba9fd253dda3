"""One selection round as it was recorded: every candidate with one outcome, and sums that add up."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dispatch.models import SelectionRound
from dispatch.queries import job_story
from dispatch.queries.maintenances import maintenances_then
from dispatch.routing.counterfactual import NotBound
from dispatch.routing.replay import ReplayError
from dispatch.services.why_not import why_not
from dispatch.views.access import requires
from dispatch.views.explanation import explained, record_of
from dispatch.views.shell import page
from dispatch.views.simulator import simulator_address
from dispatch.views.snapshot_words import unreplayed_said


@require_safe
@requires("read")
def selection_round(request: HttpRequest, job_id: str, number: int) -> HttpResponse:
    job = job_story.find_job(job_id)
    found = job and job_story.find_round(job, number)
    if not job or not found:
        raise Http404
    numbers = job_story.round_numbers(job)
    attempts = list(job.attempts.select_related("supply").order_by("number"))
    told = explained(found, attempts, maintenances_then([found])[found.pk])
    context = {
        "job": job,
        "round": found,
        "told": told,
        "losers": [row.supply for row in told.rows if row.outcome != "selected"],
        **_why_not(found, request.GET.get("why_not", "")),
        "record": record_of(found),
        "count": len(numbers),
        "previous": number - 1 if number - 1 in numbers else None,
        "next": number + 1 if number + 1 in numbers else None,
    }
    return page(request, "console/round.html", context, timezone.now())


def _why_not(found: SelectionRound, supply: str) -> dict[str, Any]:
    """What would have made `supply` win, each change with the address where it is tried."""
    if not supply:
        return {}
    try:
        answer = why_not(found, supply, timezone.now())
    except (NotBound, ReplayError) as error:
        return {"why_not": supply, "cannot_say": unreplayed_said(str(error))}
    tried = [(change.note, simulator_address(found, change.supposition)) for change in answer.changes]
    return {"why_not": supply, "answer": answer, "tried": tried}
