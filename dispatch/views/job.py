"""The whole story of one job on one page."""

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dispatch.lifecycle import FINAL_JOB_STATES
from dispatch.models import Asset, Job, ProviderEvent
from dispatch.queries import job_story
from dispatch.queries.health_log import named
from dispatch.queries.maintenances import maintenances_then
from dispatch.queries.timeline import timeline
from dispatch.queries.waiting_job import waiting_of
from dispatch.services.show_content import show_content
from dispatch.views.access import actor_of, requires
from dispatch.views.explanation import explained
from dispatch.views.job_record import record_of
from dispatch.views.model_choice import model_choice_of
from dispatch.views.request_words import facts_of
from dispatch.views.shell import is_beat, page


@require_safe
@requires("read")
def job(request: HttpRequest, job_id: str) -> HttpResponse:
    found = job_story.find_job(job_id)
    return _job_page(request, found, content=None) if found else _not_found(request, job_id)


@require_POST
@requires("read")
def content(request: HttpRequest, job_id: str) -> HttpResponse:
    """What the customer wrote."""
    job = _found(job_id)
    written = show_content(job, actor=actor_of(request), now=timezone.now())
    if is_beat(request):
        return render(request, "console/job.html#content", {"job": job, "content": written})
    return _job_page(request, job, content=written)


@require_safe
@requires("read")
def output(_request: HttpRequest, job_id: str, asset_id: str) -> HttpResponseBase:
    """A delivered file, for operators."""
    asset = Asset.objects.filter(
        public_id=asset_id, attempt__job__public_id=job_id, kind=Asset.Kind.OUTPUT
    ).first()
    if asset is not None and asset.is_expired(timezone.now()):
        return HttpResponse(status=410)
    path = settings.MEDIA_DIR / asset.path if asset else None
    if asset is None or path is None or not path.is_file():
        raise Http404
    response = FileResponse(path.open("rb"), content_type=asset.content_type)
    response.headers["Content-Disposition"] = f'inline; filename="{asset.public_id}{path.suffix}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _found(job_id: str) -> Job:
    job = job_story.find_job(job_id)
    if job is None:
        raise Http404
    return job


def _not_found(request: HttpRequest, job_id: str) -> HttpResponse:
    """The search, with the id still in its box."""
    context = {"q": job_id, "hits": [], "as_of": timezone.now()}
    return render(request, "console/search.html", context, status=404)


def _events(request: HttpRequest, story: job_story.JobStory) -> list[tuple[int, ProviderEvent]]:
    """By their number: all of them, or only those that tell of a failure."""
    numbered = enumerate(story.events, start=1)
    if request.GET.get("events") != "failures":
        return list(numbered)
    return [(number, event) for number, event in numbered if job_story.is_failure(event)]


def _job_page(request: HttpRequest, job: Job, content: object) -> HttpResponse:
    now = timezone.now()
    story = job_story.job_story(job)
    out = maintenances_then(story.rounds)
    context = {
        "job": job,
        "story": story,
        "settled": job.state in FINAL_JOB_STATES,
        "content": content,
        "changes": named(story.changes) if story.changes else (),
        "timeline": timeline(job.created_at, job_story.attempt_times(story, now), now),
        "rounds": [explained(each, story.attempts, out[each.pk]) for each in story.rounds],
        "asked": facts_of(job.request),
        "choice": model_choice_of(job),
        "record": record_of(story),
        "failures_only": request.GET.get("events") == "failures",
        "shown_events": _events(request, story),
        "page_address": request.build_absolute_uri(request.path),
        "waiting": waiting_of(job, now),
    }
    return page(request, "console/job.html", context, now)
