"""Serves a stored file, whole or one range of it."""

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from rest_framework.request import Request

from dispatch.models import Asset
from dispatch.outputs.ranges import FilePart, answer_range, file_headers
from dispatch.outputs.storage import MediaStore


def file_response(request: Request, asset: Asset) -> HttpResponseBase:
    """200, 206 or 416, with the proved type and the protective headers."""
    answer = answer_range(
        request.headers.get("Range"), asset.size_bytes, f'"{asset.sha256}"', request.headers.get("If-Range")
    )
    headers = {**file_headers(asset.content_type, asset.public_id), **answer.headers}
    if answer.status == 416:
        return HttpResponse(status=416, headers=headers)
    path = MediaStore(settings.MEDIA_DIR).path(asset.path)
    part = FilePart(path, answer.start, answer.length)
    return StreamingHttpResponse(part, status=answer.status, headers=headers)
