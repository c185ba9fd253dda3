"""`/api/v1/images/`: an image while the caller waits."""

from time import sleep
from typing import Any

from django.http import HttpResponse
from django.utils.timezone import now
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from billing.authentication import caller_of, scope_required
from dispatch.api.keys import KEY_HEADER, idempotency_key
from dispatch.api.serializers import ImageRequestSerializer
from dispatch.services.answer_image import Waiting
from dispatch.services.generate_image import generate_image

_PROBLEM = "application/problem+json"


class ImageList(APIView):
    """Make an image and answer it."""

    permission_classes = [*APIView.permission_classes, scope_required("submit")]

    @extend_schema(
        request=ImageRequestSerializer,
        parameters=[KEY_HEADER],
        responses={
            200: OpenApiResponse(description="The finished job: succeeded, failed or cancelled."),
            202: OpenApiResponse(description="The job, whose result is not ours yet; look at it later."),
            402: OpenApiResponse(description="Too little credit."),
            429: OpenApiResponse(description="All that could take it is busy; nothing was stored."),
            502: OpenApiResponse(description="Nobody knows yet whether it was made; `job` names the job."),
            503: OpenApiResponse(description="Nothing that could take it is in service; nothing was stored."),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        key = idempotency_key(request)
        serializer = ImageRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        body: dict[str, Any] = serializer.validated_data
        request_id = getattr(request, "request_id", "")
        # Looked up at each call: tests let their own time pass.
        waiting = Waiting(lambda: now(), lambda seconds: sleep(seconds))
        answer = generate_image(caller_of(request), body, key, request_id, waiting)
        content_type = _PROBLEM if answer.status >= 400 else "application/json"
        response = HttpResponse(answer.body, status=answer.status, content_type=content_type)
        response["Location"] = f"/api/v1/jobs/{answer.job_id}/"
        return response
