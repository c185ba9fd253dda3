"""`/api/v1/jobs/`: submit, list, look, cancel, download."""

import logging
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.timezone import now
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.authentication import caller_of, scope_required
from dispatch.api.files import file_response
from dispatch.api.keys import KEY_HEADER, idempotency_key
from dispatch.api.pages import NewestFirst
from dispatch.api.serializers import JobRequestSerializer
from dispatch.errors import InvalidRequest, OutputExpired, UnknownJob
from dispatch.lifecycle import JobState
from dispatch.models import Asset, Attempt, Job
from dispatch.queries.waiting_job import customer_queue
from dispatch.representation import job_as_json
from dispatch.services.accept import accept
from dispatch.services.cancel import cancel
from dispatch.services.raise_alerts import output_lost
from dispatch.waiting import CustomerQueue

logger = logging.getLogger(__name__)
_FORM = JobRequestSerializer()  # for all requests: to make one anew costs more than to ask it


def _jobs_of(request: Request) -> QuerySet[Job]:
    newest = Attempt.objects.select_related("provider_job").order_by("number")
    return (
        Job.objects.filter(customer=caller_of(request).customer)
        .select_related("public_model", "customer")
        .prefetch_related(
            Prefetch("attempts", newest),
            Prefetch("adopted_attempt__assets", Asset.objects.order_by("number")),
        )
    )


def _job(request: Request, job_id: str) -> Job:
    jobs = _jobs_of(request).select_related("line__lot__round", "line__tenant")
    job = jobs.filter(public_id=job_id).first()
    if job is None:
        raise UnknownJob(f"There is no job {job_id} in this account.")
    return job


def _as_json(job: Job, queue: CustomerQueue | None) -> dict[str, Any]:
    attempts = list(job.attempts.all())
    outputs = job.adopted_attempt.assets.all() if job.adopted_attempt else []
    return job_as_json(job, outputs, attempts[-1] if attempts else None, queue)


def _answer(job: Job) -> dict[str, Any]:
    """One job, and why it waits if it does; a list leaves that out."""
    return _as_json(job, customer_queue(job, now()))


class JobList(APIView):
    """Submit a job, or list yours."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """One transaction from the key to the answer: what is looked up on the way needs none of its own."""
        try:
            with transaction.atomic():
                return super().dispatch(request, *args, **kwargs)
        except OperationalError as error:  # the transaction could not begin, or nobody knows whether it ended
            self.headers = self.default_response_headers
            self.request = self.initialize_request(request, *args, **kwargs)
            return self.finalize_response(self.request, self.handle_exception(error), *args, **kwargs)

    def get_permissions(self) -> list[Any]:
        scope = "submit" if self.request.method == "POST" else "read"
        return [*super().get_permissions(), scope_required(scope)()]

    @extend_schema(
        request=JobRequestSerializer,
        parameters=[KEY_HEADER],
        responses={
            201: OpenApiResponse(description="The job."),
            402: OpenApiResponse(description="Too little credit."),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        key = idempotency_key(request)
        acceptance = accept(caller_of(request), _FORM.run_validation(request.data), key, now())
        return HttpResponse(acceptance.answer, status=201, content_type="application/json")

    @extend_schema(
        operation_id="jobs_list",
        parameters=[
            OpenApiParameter("state", str, enum=[state.value for state in JobState]),
            OpenApiParameter("idempotency_key", str, description="Of the request that made the job."),
        ],
        responses={200: OpenApiResponse(description="A page of jobs, newest first.")},
    )
    def get(self, request: Request) -> Response:
        jobs = _jobs_of(request)
        state = request.query_params.get("state")
        if state is not None:
            if state not in list(JobState):
                raise InvalidRequest(f"There is no state {state[:20]!r}.", "state")
            jobs = jobs.filter(state=state)
        key = request.query_params.get("idempotency_key")
        if key is not None:
            jobs = jobs.filter(idempotency_key=key)
        paginator = NewestFirst()
        page = paginator.paginate_queryset(jobs, request, self) or []
        return paginator.get_paginated_response([_as_json(job, queue=None) for job in page])


class JobDetail(APIView):
    """One job."""

    permission_classes = [*APIView.permission_classes, scope_required("read")]

    @extend_schema(responses={200: OpenApiResponse(description="The job.")})
    def get(self, request: Request, job_id: str) -> Response:
        return Response(_answer(_job(request, job_id)))


class JobCancel(APIView):
    """Ask for a job to be cancelled."""

    permission_classes = [*APIView.permission_classes, scope_required("submit")]

    @extend_schema(request=None, responses={202: OpenApiResponse(description="The wish is recorded.")})
    def post(self, request: Request, job_id: str) -> Response:
        cancel(_job(request, job_id).pk, now())
        return Response(_answer(_job(request, job_id)), status=202)


class JobOutput(APIView):
    """A delivered file, whole or one range of it."""

    permission_classes = [*APIView.permission_classes, scope_required("read")]

    @extend_schema(
        responses={
            200: OpenApiResponse(description="The file."),
            206: OpenApiResponse(description="A range."),
        }
    )
    def get(self, request: Request, job_id: str, number: int) -> HttpResponseBase:
        job = _job(request, job_id)
        adopted = job.adopted_attempt
        outputs = adopted.assets.all() if adopted else []
        asset = next((asset for asset in outputs if asset.number == number), None)
        if adopted is None or asset is None:
            raise UnknownJob(f"{job_id} has no output {number}; it is {job.state}.")
        if asset.is_expired(now()):
            raise OutputExpired(f"Output {number} of {job_id} was kept until {asset.expires_at:%Y-%m-%d}.")
        try:
            return file_response(request, asset)
        except FileNotFoundError as error:
            logger.exception("A delivered file is missing", extra={"job": job_id, "asset": asset.public_id})
            output_lost(adopted, "its stored file is missing", now())
            raise OutputExpired(f"Output {number} of {job_id} is not kept any more.") from error
