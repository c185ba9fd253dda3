"""One selection round as it was recorded: every candidate with one outcome, and sums that add up."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dispatch.queries import job_story
from dispatch.views.access import requires
from dispatch.views.explanation import explained, record_of
from dispatch.views.shell import page


@require_safe
@requires("read")
def selection_round(request: HttpRequest, job_id: str, number: int) -> HttpResponse:
    job = job_story.find_job(job_id)
    found = job and job_story.find_round(job, number)
    if not job or not found:
        raise Http404
    numbers = job_story.round_numbers(job)
    context = {
        "job": job,
        "round": found,
        "told": explained(found, list(job.attempts.select_related("supply").order_by("number"))),
        "record": record_of(found),
        "count": len(numbers),
        "previous": number - 1 if number - 1 in numbers else None,
        "next": number + 1 if number + 1 in numbers else None,
    }
    return page(request, "console/round.html", context, timezone.now())
