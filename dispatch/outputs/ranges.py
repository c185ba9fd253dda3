"""Serving a stored file: which part was asked for, with which headers, in bounded memory (RFC 9110)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 256 * 1024
_SINGLE = re.compile(r"bytes[ \t]*=[ \t]*(\d{0,19})[ \t]*-[ \t]*(\d{0,19})[ \t]*", re.IGNORECASE | re.ASCII)

# Foreign bytes from our own origin: never guessed at, never scripted, never framed elsewhere.
PROTECTIVE_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-site",
}
_SUFFIXES = {
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/wav": "wav",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Status (200, 206, 416), the bytes to send (`length` from `start`; none for 416) and the headers."""

    status: int
    start: int
    length: int
    headers: Mapping[str, str] = field(default_factory=dict)


def answer_range(range_header: str | None, size: int, etag: str, if_range: str | None = None) -> Answer:
    """What to send of a file of `size` bytes.

    One range is served; several, or words we don't understand, get the whole file, as the standard allows.
    `etag` is a strong validator with its quotes; an `If-Range` that is not exactly it asks for the whole.
    """
    common = {"Accept-Ranges": "bytes", "ETag": etag}
    if range_header is None or (if_range is not None and if_range.strip() != etag):
        return _whole(size, common)
    asked = _SINGLE.fullmatch(range_header.strip())
    if asked is None or asked.groups() == ("", ""):
        return _whole(size, common)
    first, last = asked.groups()
    if first and last and int(last) < int(first):
        return _whole(size, common)
    start, end = (int(first), int(last or size)) if first else (max(size - int(last), 0), size)
    end = min(end, size - 1)
    if start > end:
        return Answer(416, 0, 0, {**common, "Content-Range": f"bytes */{size}", "Content-Length": "0"})
    length = end - start + 1
    part = {"Content-Range": f"bytes {start}-{end}/{size}", "Content-Length": str(length)}
    return Answer(206, start, length, {**common, **part})


def file_headers(content_type: str, name: str) -> dict[str, str]:
    """Type, a name for saving (our own words: `name` plus the type's ending), and the protection."""
    suffix = suffix_of(content_type)
    shown = content_type if content_type in _SUFFIXES else "application/octet-stream"
    disposition = f'inline; filename="{re.sub(r"[^A-Za-z0-9_-]", "", name)}.{suffix}"'
    return {"Content-Type": shown, "Content-Disposition": disposition, **PROTECTIVE_HEADERS}


def suffix_of(content_type: str) -> str:
    """The ending of a file's name, without the dot."""
    return _SUFFIXES.get(content_type, "bin")


class FilePart:
    """An open file's bytes from `start`, as chunks: the content of a streaming response, which closes it.

    Opens at once, so that a missing file is an OSError before any header is sent.
    """

    def __init__(self, path: Path, start: int, length: int) -> None:
        self._file: BinaryIO = path.open("rb")
        self._file.seek(start)
        self._left = length

    def __iter__(self) -> Iterator[bytes]:
        while self._left > 0:
            chunk = self._file.read(min(CHUNK_BYTES, self._left))
            if not chunk:
                # Shorter than its row says: an honest break, not a body that looks whole.
                raise OSError("a stored file is shorter than recorded")
            self._left -= len(chunk)
            yield chunk

    def close(self) -> None:
        self._file.close()


def _whole(size: int, common: Mapping[str, str]) -> Answer:
    return Answer(200, 0, size, {**common, "Content-Length": str(size)})
