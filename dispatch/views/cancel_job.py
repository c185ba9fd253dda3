"""Ending a customer's job on an operator's word: what it does is said first, and one returns to the list."""

from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dispatch.models import Job
from dispatch.queries import job_story
from dispatch.services.answer_once import answer_once
from dispatch.services.stop_job import stop_job
from dispatch.views.access import actor_of, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.session import local_next

_CANCEL: Final = "cancel job"
REASON_LENGTH: Final = 300


@require_safe
@requires("stop")
def cancel_job(request: HttpRequest, job_id: str) -> HttpResponse:
    wanted = request.GET.get("next", "")
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    back = wanted if wanted and ours else reverse("job", args=[job_id])
    return _page(request, _found(job_id), back, {}, 200)


@require_POST
@requires("stop")
def cancel_job_now(request: HttpRequest, job_id: str) -> HttpResponse:
    form = confirmed(request, _CANCEL, job_id)
    job, back = _found(job_id), local_next(request, "job", job_id)
    reason = request.POST.get("reason", "").strip()[:REASON_LENGTH]
    if not reason:
        return _page(request, job, back, {"reason": "no_reason"}, 422)
    actor, now = actor_of(request), timezone.now()

    def end() -> str:
        if stop_job(job, reason, actor=actor, now=now):
            messages.info(request, _("The job is cancelled, or asked to stop where it runs."))
        else:
            messages.info(request, _("It has ended, or was cancelled before: nothing was changed."))
        return back

    return redirect(answer_once(form.key, actor.name, now, end) or back)


def _page(request: HttpRequest, job: Job, back: str, faults: dict[str, str], status: int) -> HttpResponse:
    context = {
        "job": job,
        "latest": job.attempts.select_related("supply").order_by("-number").first(),
        "back": back,
        "faults": faults,
        "token": confirm_token(request, _CANCEL, job.public_id),
        "reason_length": REASON_LENGTH,
        "as_of": timezone.now(),
    }
    return render(request, "console/job_cancel.html", context, status=status)


def _found(job_id: str) -> Job:
    job = job_story.find_job(job_id)
    if job is None:
        raise Http404
    return job
