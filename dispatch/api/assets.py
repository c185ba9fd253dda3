"""`/api/v1/assets/`: upload a reference once, use its id in jobs; and the signed door for providers."""

import logging
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils.timezone import now
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, OpenApiTypes, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.authentication import caller_of, scope_required
from dispatch.api.files import file_response
from dispatch.api.pages import NewestFirst
from dispatch.api.uploads import BodyParser, FormParser
from dispatch.errors import InvalidRequest, UnknownAsset
from dispatch.inputs.delivery import kind_of, link_key
from dispatch.inputs.links import LinkState, check_link
from dispatch.models import Asset
from dispatch.outputs.fetching import Fetched
from dispatch.outputs.ranges import suffix_of
from dispatch.representation import time_as_json
from dispatch.services.store_asset import store_asset

logger = logging.getLogger(__name__)
_NOWHERE = "This address leads nowhere, or no longer does."


def _inputs_of(request: Request) -> QuerySet[Asset]:
    return Asset.objects.filter(customer=caller_of(request).customer, kind=Asset.Kind.INPUT)


def asset_as_json(asset: Asset) -> dict[str, Any]:
    """The body of `GET /api/v1/assets/{id}/`."""
    return {
        "id": asset.public_id,
        "object": "asset",
        "kind": kind_of(asset),
        "content_type": asset.content_type,
        "size_bytes": asset.size_bytes,
        "sha256": asset.sha256,
        "width": asset.width,
        "height": asset.height,
        "duration_ms": asset.duration_ms,
        "created_at": time_as_json(asset.created_at),
    }


class AssetList(APIView):
    """Upload a file, or list yours."""

    parser_classes = [FormParser, BodyParser]

    def get_permissions(self) -> list[Any]:
        scope = "submit" if self.request.method == "POST" else "read"
        return [*super().get_permissions(), scope_required(scope)()]

    @extend_schema(
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {"file": {"type": "string", "format": "binary"}},
                "required": ["file"],
            },
            "application/octet-stream": OpenApiTypes.BINARY,
        },
        responses={
            201: OpenApiResponse(description="The asset."),
            200: OpenApiResponse(description="The same bytes were uploaded before: that asset."),
            413: OpenApiResponse(description="Larger than a file of its kind may be."),
            422: OpenApiResponse(description="Not an image, a video or a sound that can be used."),
        },
    )
    def post(self, request: Request) -> Response:
        part = request.data.get("file") if isinstance(request.data, dict) else None
        if not isinstance(part, Fetched):
            raise InvalidRequest("Send a file, as the form's field file or as the body.", "file")
        asset, is_new = store_asset(caller_of(request).customer, part, now())
        return Response(asset_as_json(asset), status=201 if is_new else 200)

    @extend_schema(
        operation_id="assets_list",
        responses={200: OpenApiResponse(description="A page of uploaded files, newest first.")},
    )
    def get(self, request: Request) -> Response:
        paginator = NewestFirst()
        page = paginator.paginate_queryset(_inputs_of(request), request, self) or []
        return paginator.get_paginated_response([asset_as_json(asset) for asset in page])


class AssetDetail(APIView):
    """One uploaded file."""

    permission_classes = [*APIView.permission_classes, scope_required("read")]

    @extend_schema(responses={200: OpenApiResponse(description="The asset.")})
    def get(self, request: Request, asset_id: str) -> Response:
        asset = _inputs_of(request).filter(public_id=asset_id).first()
        if asset is None:
            raise UnknownAsset(f"There is no asset {asset_id} in this account.")
        return Response(asset_as_json(asset))


class AssetFile(APIView):
    """The file itself, for a provider that was given a signed address: no key, no listing, an end."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []

    @extend_schema(
        parameters=[OpenApiParameter("expires", str), OpenApiParameter("signature", str)],
        responses={
            200: OpenApiResponse(description="The file."),
            206: OpenApiResponse(description="A range."),
        },
    )
    def get(self, request: Request, asset_id: str, suffix: str) -> HttpResponseBase:
        said = request.query_params
        state = check_link(
            [link_key()],
            asset_id,
            said.get("expires", ""),
            said.get("signature", ""),
            int(now().timestamp()),
        )
        asset = (
            Asset.objects.filter(public_id=asset_id, kind=Asset.Kind.INPUT).first()
            if state is LinkState.VALID
            else None
        )
        if asset is None or suffix != suffix_of(asset.content_type):
            raise UnknownAsset(_NOWHERE)
        try:
            return file_response(request, asset)
        except FileNotFoundError as error:
            logger.exception("An uploaded file is missing", extra={"asset": asset.public_id})
            raise UnknownAsset(_NOWHERE) from error
