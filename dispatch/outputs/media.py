"""Is this file the medium it claims to be? The first bytes say which parser; the parser runs locked in.

Names and declared types decide nothing. The parent never parses: it looks at 64 bytes and has the rest done
by `verify_media.py`, without our environment, so a broken parser finds neither secrets nor a network."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dispatch.outputs import verifiers
from dispatch.outputs.limits import MediaLimits

HEAD_BYTES = 64
MAX_REPORT_BYTES = 65_536

_MP4_BRANDS = (b"isom", b"iso", b"mp4", b"avc1", b"M4V", b"MSNV", b"dash", b"hvc1", b"hev1", b"av01", b"3gp")


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What the first bytes say. `parser` is PyAV's demuxer or Pillow's format: no other is ever tried."""

    kind: str  # video, image or audio
    content_type: str
    parser: str


@dataclass(frozen=True, slots=True)
class Verified:
    """A file that was really decoded; sizes in pixels, None where the kind has none."""

    kind: str
    content_type: str
    width: int | None
    height: int | None
    duration_ms: int | None
    has_audio: bool


@dataclass(frozen=True, slots=True)
class Invalid:
    """Not usable. `reason` is stable: empty, not_media, wrong_kind, too_many_pixels, too_long, undecodable,
    truncated, trailing_data, verifier_timeout, verifier_killed (over the bounds of time or memory)."""

    reason: str


def verify(path: Path, expected_kind: str, limits: MediaLimits) -> Verified | Invalid:
    """Decode the file in a process of its own with its own bounds.

    `expected_kind`: video, image or audio. Raises OSError if the file can't be read or no process started:
    that is our own trouble and says nothing about the file.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        return Invalid("empty")
    sniffed = sniff(head)
    if sniffed is None:
        return Invalid("not_media")
    if sniffed.kind != expected_kind:
        return Invalid("wrong_kind")
    report = _run_verifier(path, sniffed, limits)
    return report if isinstance(report, Invalid) else _verified(sniffed, report)


def sniff(head: bytes) -> Sniffed | None:
    """By magic bytes alone; None for everything that is not on our list (SVG, HTML, playlists, archives)."""
    if head[4:8] == b"ftyp":
        return _sniff_iso_media(head[8:12])
    if head[4:8] in (b"moov", b"mdat", b"wide"):  # QuickTime from before ftyp
        return Sniffed("video", "video/quicktime", "mov")
    if head[:4] == b"\x1aE\xdf\xa3":
        return _sniff_matroska(head)
    if head[:4] == b"RIFF":
        return _sniff_riff(head[8:12])
    return _sniff_flat(head)


def _sniff_iso_media(brand: bytes) -> Sniffed | None:
    if brand == b"qt  ":
        return Sniffed("video", "video/quicktime", "mov")
    if brand in (b"M4A ", b"M4B "):
        return Sniffed("audio", "audio/mp4", "mov")
    return Sniffed("video", "video/mp4", "mov") if brand.startswith(_MP4_BRANDS) else None


def _sniff_matroska(head: bytes) -> Sniffed | None:
    if b"webm" in head:
        return Sniffed("video", "video/webm", "matroska")
    return Sniffed("video", "video/x-matroska", "matroska") if b"matroska" in head else None


def _sniff_riff(form: bytes) -> Sniffed | None:
    if form == b"WEBP":
        return Sniffed("image", "image/webp", "WEBP")
    return Sniffed("audio", "audio/wav", "wav") if form == b"WAVE" else None


def _sniff_flat(head: bytes) -> Sniffed | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return Sniffed("image", "image/png", "PNG")
    if head.startswith(b"\xff\xd8\xff"):
        return Sniffed("image", "image/jpeg", "JPEG")
    if head.startswith((b"GIF87a", b"GIF89a")):
        return Sniffed("image", "image/gif", "GIF")
    # Layer III of MPEG 1 and 2, with or without the tag in front.
    if head.startswith((b"ID3", b"\xff\xfb", b"\xff\xfa", b"\xff\xf3", b"\xff\xf2")):
        return Sniffed("audio", "audio/mpeg", "mp3")
    return None


def _run_verifier(path: Path, sniffed: Sniffed, limits: MediaLimits) -> Mapping[str, Any] | Invalid:
    order = {"kind": sniffed.kind, "parser": sniffed.parser, **asdict(limits)}
    # The report goes to a file, not a pipe: RLIMIT_FSIZE then bounds what a hijacked parser can make us read.
    with path.open("rb") as file, tempfile.TemporaryFile() as report:
        end = verifiers.examine(file, report, order)
        report.seek(0)
        written = report.read(MAX_REPORT_BYTES)
    if end == verifiers.TOOK_TOO_LONG:
        return Invalid("verifier_timeout")
    return _read_report(written) if end == verifiers.ENDED_WELL else Invalid("verifier_killed")


def _read_report(written: bytes) -> Mapping[str, Any] | Invalid:
    try:
        report = json.loads(written)
    except ValueError:
        return Invalid("verifier_killed")
    if not isinstance(report, dict):
        return Invalid("verifier_killed")
    return Invalid(str(report["invalid"])[:40]) if "invalid" in report else report


def _verified(sniffed: Sniffed, report: Mapping[str, Any]) -> Verified | Invalid:
    width, height, duration_ms = (_count(report.get(name)) for name in ("width", "height", "duration_ms"))
    if sniffed.kind != "audio" and not (width and height):
        return Invalid("undecodable")
    if sniffed.kind != "image" and not duration_ms:
        return Invalid("undecodable")
    has_audio = report.get("has_audio") is True
    return Verified(sniffed.kind, sniffed.content_type, width, height, duration_ms, has_audio)


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None
