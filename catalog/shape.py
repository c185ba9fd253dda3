"""What of a normalized request decides capability, price and route: counts and settings, never its content.

Video and image are apart: an image has nothing that speaks of real persons.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalog.document import Number, Section

VIDEO_MODES: Final = ("text_to_video", "image_to_video", "first_last_frame", "video_to_video", "extend")
IMAGE_MODES: Final = ("text_to_image", "image_edit")


@dataclass(frozen=True, slots=True)
class VideoShape:
    """One video request. None means not asked for."""

    mode: str
    duration_s: Number | None = None
    resolution: str | None = None
    aspect_ratio: str | None = None
    images: int = 0  # reference inputs
    videos: int = 0
    audios: int = 0
    audio: bool = False  # native sound in the result
    real_person: bool = False
    billing_mode: str = "per_second"
    fps: int | None = None
    sample_count: int = 1  # results of the one job
    first_frame: bool = False
    last_frame: bool = False
    seed: bool = False  # whether one is given, not which
    negative_prompt: bool = False

    @property
    def count(self) -> int:
        return self.sample_count


@dataclass(frozen=True, slots=True)
class ImageShape:
    """One image request."""

    mode: str
    size: str | None = None
    n: int = 1  # results of the one job
    images: int = 0  # reference inputs
    seed: bool = False
    negative_prompt: bool = False

    @property
    def count(self) -> int:
        return self.n


type Shape = VideoShape | ImageShape

# The fields that constraints and price multipliers may name, with the kind of their values.
VIDEO_FIELDS: Final[Mapping[str, str]] = {
    "mode": "text",
    "duration_s": "number",
    "resolution": "text",
    "aspect_ratio": "text",
    "images": "number",
    "videos": "number",
    "audios": "number",
    "audio": "flag",
    "real_person": "flag",
    "billing_mode": "text",
    "fps": "number",
    "sample_count": "number",
    "first_frame": "flag",
    "last_frame": "flag",
    "seed": "flag",
    "negative_prompt": "flag",
}
IMAGE_FIELDS: Final[Mapping[str, str]] = {
    "mode": "text",
    "size": "text",
    "n": "number",
    "images": "number",
    "seed": "flag",
    "negative_prompt": "flag",
}


def fields_of(modality: str) -> Mapping[str, str]:
    return VIDEO_FIELDS if modality == "video" else IMAGE_FIELDS


BILLING_MODES: Final = ("per_second", "per_request")


def read_shape(modality: str, section: Section) -> Shape:
    """A shape that is written by its own fields, or by fewer that the section knows. Raises DocumentError."""
    return _read_video(section) if modality == "video" else _read_image(section)


def _read_video(section: Section) -> VideoShape:
    return VideoShape(
        mode=section.choice("mode", VIDEO_MODES),
        duration_s=section.number("duration_s", None),
        resolution=section.text("resolution", None),
        aspect_ratio=section.text("aspect_ratio", None),
        images=section.whole("images", 0),
        videos=section.whole("videos", 0),
        audios=section.whole("audios", 0),
        audio=section.flag("audio", False),
        real_person=section.flag("real_person", False),
        billing_mode=section.choice("billing_mode", BILLING_MODES, "per_second"),
        fps=section.whole("fps", None, least=1),
        sample_count=section.whole("sample_count", 1, least=1),
        first_frame=section.flag("first_frame", False),
        last_frame=section.flag("last_frame", False),
        seed=section.flag("seed", False),
        negative_prompt=section.flag("negative_prompt", False),
    )


def _read_image(section: Section) -> ImageShape:
    return ImageShape(
        mode=section.choice("mode", IMAGE_MODES),
        size=section.text("size", None),
        n=section.whole("n", 1, least=1),
        images=section.whole("images", 0),
        seed=section.flag("seed", False),
        negative_prompt=section.flag("negative_prompt", False),
    )


def shape_of(modality: str, request: Mapping[str, Any]) -> Shape:
    """The shape of a customer's normalized request (the body of `POST jobs/`, with its lists of assets)."""
    return _video_shape(request) if modality == "video" else _image_shape(request)


def _video_shape(request: Mapping[str, Any]) -> VideoShape:
    return VideoShape(
        mode=request["mode"],
        duration_s=request.get("duration_s"),
        resolution=request.get("resolution"),
        aspect_ratio=request.get("aspect_ratio"),
        images=len(request.get("reference_images") or ()),
        videos=len(request.get("reference_videos") or ()),
        audios=len(request.get("reference_audios") or ()),
        audio=bool(request.get("audio")),
        real_person=bool(request.get("real_person")),
        billing_mode=request.get("billing_mode") or "per_second",
        fps=request.get("fps"),
        sample_count=request.get("sample_count") or 1,
        first_frame=bool(request.get("first_frame")),
        last_frame=bool(request.get("last_frame")),
        seed=request.get("seed") is not None,
        negative_prompt=bool(request.get("negative_prompt")),
    )


def _image_shape(request: Mapping[str, Any]) -> ImageShape:
    return ImageShape(
        mode=request["mode"],
        size=request.get("size"),
        n=request.get("n") or 1,
        images=len(request.get("reference_images") or ()),
        seed=request.get("seed") is not None,
        negative_prompt=bool(request.get("negative_prompt")),
    )
