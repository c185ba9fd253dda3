"""`/api/v1/models/`: what this customer may ask for, with what a degraded delivery may lose."""

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.authentication import caller_of, scope_required
from catalog.models import PublicModel


class ModelList(APIView):
    """The catalogue; no supplier, channel or priority is in it."""

    permission_classes = [*APIView.permission_classes, scope_required("read")]

    @extend_schema(responses={200: OpenApiResponse(description="The models of this account.")})
    def get(self, request: Request) -> Response:
        customer = caller_of(request).customer
        group = customer.group.slug if customer.group else None
        models = PublicModel.objects.filter(published=True, enabled=True).order_by("slug")
        return Response({"results": [_as_json(model) for model in models if _is_open(model, group)]})


def _is_open(model: PublicModel, group: str | None) -> bool:
    return not model.allowed_groups or group in model.allowed_groups


def _as_json(model: PublicModel) -> dict[str, Any]:
    return {
        "id": model.slug,
        "object": "model",
        "name": model.display_name,
        "modality": model.modality,
        "profile": model.profile,
        "parameters": model.parameters,
        "price": model.price,
        "degradation": model.degradation,
        "disclosure": model.disclosure,
    }
