"""Waits with a customer for an image, and says what came of it: the same to all who asked by one key."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from dispatch.lifecycle import FINAL_JOB_STATES, AttemptState
from dispatch.models import Attempt, Job
from dispatch.problems import problem_as_json
from dispatch.representation import job_as_json
from dispatch.services.fetch_output import fetch_output

A = AttemptState
WATCH_EVERY_S = 0.25
UNKNOWN_WORDS = (
    "It is not known yet whether the image was made. Nothing is sent again; look at the job, "
    "which ends when this is cleared up."
)


@dataclass(frozen=True)
class ImageAnswer:
    """`body` is sent as it is. 200: the finished job; 202: the job, which goes on; 502: nobody knows."""

    status: int
    body: str
    job_id: str


@dataclass(frozen=True)
class Waiting:
    """How time passes for a request: read, and let go by."""

    clock: Callable[[], datetime]
    pause: Callable[[float], None]


def answer_image(job: Job, request_id: str, waiting: Waiting, is_mine: bool) -> ImageAnswer:
    """Watches the rows until there is something to say; whoever says it first, says it for all.

    `is_mine`: the job was made by this request, which fetches its output itself."""
    while True:
        job = _read(job)
        if job.first_answer:
            return ImageAnswer(job.first_status, job.first_answer, job.public_id)
        last = job.attempts.order_by("-number").first()
        is_late = waiting.clock() >= job.dispatch_deadline_at
        if is_mine and not is_late and last is not None and last.state == A.GENERATED:
            fetch_output(last.pk, waiting.clock, until=job.dispatch_deadline_at)
            continue
        answer = _to_say(job, last, request_id, is_late)
        if answer is None:
            waiting.pause(WATCH_EVERY_S)
        else:
            Job.objects.filter(pk=job.pk, first_answer="").update(
                first_answer=answer.body, first_status=answer.status
            )


def _read(job: Job) -> Job:
    return Job.objects.select_related("customer", "public_model", "adopted_attempt").get(pk=job.pk)


def _to_say(job: Job, last: Attempt | None, request_id: str, is_late: bool) -> ImageAnswer | None:
    if job.state in FINAL_JOB_STATES:
        return _job_answer(HTTPStatus.OK, job, last)
    if last is not None and last.state == A.SUBMISSION_UNCERTAIN:
        problem = problem_as_json(
            HTTPStatus.BAD_GATEWAY, "submission_unknown", UNKNOWN_WORDS, request_id, job=job.public_id
        )
        return ImageAnswer(HTTPStatus.BAD_GATEWAY, json.dumps(problem, ensure_ascii=False), job.public_id)
    return _job_answer(HTTPStatus.ACCEPTED, job, last) if is_late else None


def _job_answer(status: HTTPStatus, job: Job, last: Attempt | None) -> ImageAnswer:
    outputs = job.adopted_attempt.assets.order_by("number") if job.adopted_attempt else []
    body = json.dumps(job_as_json(job, outputs, last), ensure_ascii=False)
    return ImageAnswer(status, body, job.public_id)
