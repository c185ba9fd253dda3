"""Our request in Ark's words, or why it can't be said in them; pure.

Nothing is cropped, trimmed or dropped here: what Ark can't do exactly is refused before anything is sent."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from catalog.providers.documents import address, number
from catalog.providers.types import CompileError, CompilePlan, NormalizedRequest, SupplyTarget, Transformation

TASKS: Final = "/contents/generations/tasks"
IMAGES: Final = "/images/generations"

RESOLUTIONS: Final = ("480p", "720p", "1080p")
RATIOS: Final = ("16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive")
VIDEO_MODES: Final = ("text_to_video", "image_to_video", "first_last_frame", "video_to_video")
FRAMES_PER_SECOND: Final = 24
_SIZE = re.compile(r"[1-4]K|[1-9]\d{2,3}x[1-9]\d{2,3}")
_REFERENCES = (
    ("reference_images", "image_url", "reference_image"),
    ("reference_videos", "video_url", "reference_video"),
    ("reference_audios", "audio_url", "reference_audio"),
)
_FRAMES = ("first_frame", "last_frame")


def compile_video(request: NormalizedRequest, supply: SupplyTarget) -> CompilePlan | CompileError:
    reasons = tuple(_video_refusals(request, supply))
    if reasons:
        return CompileError(reasons)
    content = list(_content(request))
    body = {
        "model": supply.provider_model,
        "content": content,
        "resolution": request.get("resolution"),
        "ratio": request.get("aspect_ratio"),
        "duration": None if request.get("duration_s") is None else int(request["duration_s"]),
        "generate_audio": bool(request.get("audio")) if supply.capability.get("audio") else None,
        "seed": request.get("seed"),
        "watermark": False,
    }
    steps = [Transformation("native_parameters", "exact")]
    if len(content) > 1:
        steps.append(Transformation("assets_by_address_and_role", "exact"))
    return CompilePlan("video", "POST", TASKS, _without_nulls(body), tuple(steps))


def _video_refusals(request: NormalizedRequest, supply: SupplyTarget) -> Iterator[str]:
    yield from _outside("mode", request.get("mode"), VIDEO_MODES)
    yield from _outside("resolution", request.get("resolution"), RESOLUTIONS)
    yield from _outside("aspect_ratio", request.get("aspect_ratio"), RATIOS)
    yield from _outside("fps", request.get("fps"), (FRAMES_PER_SECOND,))
    yield from _outside("sample_count", request.get("sample_count"), (1,))
    yield from _common_refusals(request, seed_below=2**32)
    duration = request.get("duration_s")
    if duration is not None and (number(duration) is None or duration < 1 or duration != int(duration)):
        yield f"duration_s {duration}: whole seconds only"
    if request.get("audio") and not supply.capability.get("audio"):
        yield "audio: this model makes none"
    yield from _asset_refusals(request)


def _asset_refusals(request: NormalizedRequest) -> Iterator[str]:
    """First frame, first and last frame, and references are three modes that exclude one another."""
    frames = [key for key in _FRAMES if request.get(key)]
    references = [key for key, _, _ in _REFERENCES if request.get(key)]
    if frames and references:
        yield f"{frames[0]} and {references[0]} exclude each other"
    if frames == ["last_frame"]:
        yield "last_frame without first_frame"
    if references == ["reference_audios"]:
        yield "reference_audios without an image or a video"
    if not (request.get("prompt") or frames or references):
        yield "prompt is missing"
    if request.get("mode") == "image_to_video" and not (frames or request.get("reference_images")):
        yield "image_to_video without an image"
    if request.get("mode") == "first_last_frame" and len(frames) < len(_FRAMES):
        yield "first_last_frame without both frames"
    if request.get("mode") == "video_to_video" and not request.get("reference_videos"):
        yield "video_to_video without a video"
    assets = [request[key] for key in frames] + [asset for key in references for asset in request[key]]
    if any(_url(asset) is None for asset in assets):
        yield "an asset has no web address"


def _common_refusals(request: NormalizedRequest, seed_below: int) -> Iterator[str]:
    if request.get("negative_prompt"):
        yield "negative_prompt: not taken"
    seed = request.get("seed")
    if seed is not None and not (isinstance(seed, int) and -1 <= seed < seed_below):
        yield f"seed {seed}: from -1 to {seed_below - 1}"


def _outside(field: str, value: Any, allowed: tuple[Any, ...]) -> Iterator[str]:
    if value is not None and value not in allowed:
        yield f"{field} {value}: only {', '.join(str(each) for each in allowed)}"


def _content(request: NormalizedRequest) -> Iterator[dict[str, Any]]:
    if request.get("prompt"):
        yield {"type": "text", "text": request["prompt"]}
    for key in _FRAMES:
        if request.get(key):
            yield {"type": "image_url", "image_url": {"url": _url(request[key])}, "role": key}
    for key, kind, role in _REFERENCES:
        for asset in request.get(key) or ():
            yield {"type": kind, kind: {"url": _url(asset)}, "role": role}


def _url(asset: Any) -> str | None:
    return address(asset.get("url")) if isinstance(asset, Mapping) else None


def compile_image(request: NormalizedRequest, supply: SupplyTarget) -> CompilePlan | CompileError:
    reasons = tuple(_image_refusals(request))
    if reasons:
        return CompileError(reasons)
    pictures = [_url(asset) for asset in request.get("reference_images") or ()]
    body = {
        "model": supply.provider_model,
        "prompt": request["prompt"],
        "image": pictures[0] if len(pictures) == 1 else pictures or None,
        "size": request.get("size"),
        "seed": request.get("seed"),
        "response_format": "url",
        "watermark": False,
    }
    steps = (Transformation("native_parameters", "exact"),)
    return CompilePlan("image", "POST", IMAGES, _without_nulls(body), steps)


def _image_refusals(request: NormalizedRequest) -> Iterator[str]:
    yield from _outside("mode", request.get("mode"), ("text_to_image", "image_edit"))
    # A series (`sequential_image_generation`) is pictures that belong together, fewer perhaps: no n samples.
    yield from _outside("n", request.get("n"), (1,))
    yield from _common_refusals(request, seed_below=2**31)
    size = request.get("size")
    if size is not None and not (isinstance(size, str) and _SIZE.fullmatch(size)):
        yield f"size {size}: only 1K to 4K or WIDTHxHEIGHT"
    if not request.get("prompt"):
        yield "prompt is missing"
    if request.get("mode") == "image_edit" and not request.get("reference_images"):
        yield "image_edit without an image"
    if any(_url(asset) is None for asset in request.get("reference_images") or ()):
        yield "an asset has no web address"


def _without_nulls(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if value is not None}
