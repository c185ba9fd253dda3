"""How a file comes in: as a form's field `file`, or as the body itself; streamed to disk either way."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from dispatch.errors import AssetTooLarge, InvalidRequest
from dispatch.inputs.receiving import CHUNK_BYTES, Incoming
from dispatch.outputs.fetching import Fetched
from dispatch.outputs.storage import MediaStore

_FORM_BYTES = 64 * 1024  # most that a form adds to its file: boundaries, headers


def limits() -> dict[str, int]:
    """Most bytes of a file, by kind."""
    return {
        "image": settings.ASSET_IMAGE_MAX_BYTES,
        "video": settings.ASSET_VIDEO_MAX_BYTES,
        "audio": settings.ASSET_AUDIO_MAX_BYTES,
    }


def _incoming() -> Incoming:
    return Incoming(MediaStore(settings.MEDIA_DIR).incoming(), limits())


def _refuse_by_declared_length(context: Mapping[str, Any] | None, allowance: int = 0) -> None:
    """Before a byte is read."""
    length = int((context or {})["request"].META.get("CONTENT_LENGTH") or 0)
    most = max(limits().values())
    if length > most + allowance:
        raise AssetTooLarge(most)


class FormParser(BaseParser):
    """`multipart/form-data` with one file in the field `file`, and nothing else."""

    media_type = "multipart/form-data"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Fetched]:
        _refuse_by_declared_length(parser_context, _FORM_BYTES)
        meta = {**(parser_context or {})["request"].META, "CONTENT_TYPE": media_type}
        with _incoming() as incoming:
            handler = _IntoStore(incoming)
            try:
                fields, _files = MultiPartParser(meta, stream, [handler]).parse()
            except MultiPartParserError as error:
                raise ParseError(f"This form can't be read: {error}") from error
            for name in fields:
                raise InvalidRequest("There is no such field.", str(name)[:60])
            if not handler.began:
                raise InvalidRequest("Send the file in the field file.", "file")
            return {"file": incoming.finish()}


class _IntoStore(FileUploadHandler):
    """Hands a form's one file on to `Incoming`, chunk by chunk."""

    chunk_size = CHUNK_BYTES

    def __init__(self, incoming: Incoming) -> None:
        super().__init__()
        self._incoming = incoming
        self.began = False

    def new_file(self, field_name: str, *args: Any, **options: Any) -> None:
        if field_name != "file" or self.began:
            raise InvalidRequest("Send one file, in the field file.", field_name[:60])
        self.began = True

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self._incoming.take(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile | None:
        return None


class BodyParser(BaseParser):
    """The file is the body; its declared type decides nothing."""

    media_type = "*/*"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Fetched]:
        _refuse_by_declared_length(parser_context)
        with _incoming() as incoming:
            while chunk := stream.read(CHUNK_BYTES):
                incoming.take(chunk)
            return {"file": incoming.finish()}
