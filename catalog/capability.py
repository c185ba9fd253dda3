"""What a supply can do: capability documents, read once, and matched against the shape of a request.

Video and image documents are apart; nothing in an image's speaks of real persons.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalog.condition import Allowed, When, holds, read_allowed, read_when, show
from catalog.document import DocumentError, Section, flag, items, whole
from catalog.shape import IMAGE_FIELDS, VIDEO_FIELDS, ImageShape, Shape, VideoShape

# What routing decides by. A scenario file takes these keys only.
VIDEO_KEYS: Final = (
    "modes", "durations_s", "resolutions", "aspect_ratios", "max_images", "max_videos", "max_audios", "audio",
    "constraints",
)  # fmt: skip
IMAGE_KEYS: Final = ("modes", "sizes", "max_n", "max_images", "constraints")

# What a published document may tell besides. Of these, `fps`, `max_samples`, `inputs`, `controls` and
# `compliance` are matched too.
COMMON_SECTIONS: Final = (
    "controls", "media_limits", "lifetimes", "operations", "quotas", "compliance", "commercial", "release",
    "self_hosted",
)  # fmt: skip
VIDEO_SECTIONS: Final = ("fps", "max_samples", "inputs", "output", *COMMON_SECTIONS)
IMAGE_SECTIONS: Final = ("output", *COMMON_SECTIONS)
COMPLIANCE_KEYS: Final = ("regions", "guarantees", "retention", "training_use")
FRAMES: Final = ("first_frame", "last_frame")
CONTROLS: Final = ("seed", "negative_prompt")


@dataclass(frozen=True, slots=True)
class Constraint:
    """Where every `when` equals the request, each `require` binds."""

    when: When
    require: tuple[tuple[str, Allowed], ...]


@dataclass(frozen=True, slots=True)
class Compliance:
    """Where data goes and what is promised about it."""

    regions: frozenset[str] = frozenset()  # empty: the channel's own region speaks
    guarantees: frozenset[str] = frozenset()  # e.g. no_training, no_retention


@dataclass(frozen=True, slots=True)
class VideoCapability:
    modes: frozenset[str]
    durations_s: Allowed
    resolutions: frozenset[str]
    aspect_ratios: frozenset[str]
    max_images: int = 0
    max_videos: int = 0
    max_audios: int = 0
    audio: bool = False
    constraints: tuple[Constraint, ...] = ()
    fps: frozenset[int] | None = None  # None: the document does not say, the adapter's compile decides
    max_samples: int | None = None
    inputs: Mapping[str, bool] | None = None  # by FRAMES
    controls: Mapping[str, bool] | None = None  # by CONTROLS
    compliance: Compliance = Compliance()


@dataclass(frozen=True, slots=True)
class ImageCapability:
    modes: frozenset[str]
    sizes: frozenset[str]
    max_n: int = 1
    max_images: int = 0
    constraints: tuple[Constraint, ...] = ()
    controls: Mapping[str, bool] | None = None
    compliance: Compliance = Compliance()


type Capability = VideoCapability | ImageCapability


def parse_capability(
    modality: str, document: Any, path: str = "", known: Collection[str] | None = None
) -> Capability:
    """Raises DocumentError, naming the path, for an unknown key or a value that can't be.

    `known` narrows the keys that are taken; by default all that a published document may hold.
    """
    if modality == "video":
        return _video(Section(document, path, known or (*VIDEO_KEYS, *VIDEO_SECTIONS)))
    return _image(Section(document, path, known or (*IMAGE_KEYS, *IMAGE_SECTIONS)))


def _video(section: Section) -> VideoCapability:
    return VideoCapability(
        modes=frozenset(section.texts("modes")),
        durations_s=read_allowed(section.raw("durations_s"), section.at("durations_s"), "number"),
        resolutions=frozenset(section.texts("resolutions")),
        aspect_ratios=frozenset(section.texts("aspect_ratios")),
        max_images=section.whole("max_images", 0),
        max_videos=section.whole("max_videos", 0),
        max_audios=section.whole("max_audios", 0),
        audio=section.flag("audio", False),
        constraints=_constraints(section, VIDEO_FIELDS),
        fps=_frame_rates(section),
        max_samples=section.whole("max_samples", None, least=1),
        inputs=_flags(section, "inputs", FRAMES),
        controls=_flags(section, "controls", CONTROLS),
        compliance=_compliance(section, (*COMPLIANCE_KEYS, "portrait")),
    )


def _image(section: Section) -> ImageCapability:
    return ImageCapability(
        modes=frozenset(section.texts("modes")),
        sizes=frozenset(section.texts("sizes")),
        max_n=section.whole("max_n", 1, least=1),
        max_images=section.whole("max_images", 0),
        constraints=_constraints(section, IMAGE_FIELDS),
        controls=_flags(section, "controls", CONTROLS),
        compliance=_compliance(section, COMPLIANCE_KEYS),
    )


def _constraints(section: Section, fields: Mapping[str, str]) -> tuple[Constraint, ...]:
    return tuple(
        Constraint(read_when(each, fields), _required(each, fields))
        for each in section.sections("constraints", ("when", "require"))
    )


def _required(section: Section, fields: Mapping[str, str]) -> tuple[tuple[str, Allowed], ...]:
    required = []
    for field, value in section.entries("require"):
        path = f"{section.at('require')}.{field}"
        if field not in fields:
            raise DocumentError(path, f"no such field of a request; known are {', '.join(sorted(fields))}")
        required.append((field, read_allowed(value, path, fields[field])))
    return tuple(required)


def _frame_rates(section: Section) -> frozenset[Any] | None:
    if not section.has("fps"):
        return None
    return frozenset(
        whole(value, path, least=1) for value, path in items(section.raw("fps"), section.at("fps"))
    )


def _flags(section: Section, key: str, names: Collection[str]) -> Mapping[str, bool] | None:
    """Those of `names` that the part `key` declares; it may tell more, which is not matched."""
    if not section.has(key):
        return None
    return {
        name: flag(value, f"{section.at(key)}.{name}")
        for name, value in section.entries(key)
        if name in names
    }


def _compliance(section: Section, known: Collection[str]) -> Compliance:
    if not section.has("compliance"):
        return Compliance()
    compliance = section.section("compliance", known)
    return Compliance(
        regions=frozenset(compliance.texts("regions", ())),
        guarantees=frozenset(compliance.texts("guarantees", ())),
    )


def lacking(capability: Capability, shape: Shape) -> list[str]:
    """What the request asks for and the supply can't do, each in readable words; empty when it fits."""
    if isinstance(shape, VideoShape) and isinstance(capability, VideoCapability):
        return _video_lacks(capability, shape)
    if isinstance(shape, ImageShape) and isinstance(capability, ImageCapability):
        return _image_lacks(capability, shape)
    raise TypeError(f"{type(capability).__name__} can't be matched with {type(shape).__name__}")


def _video_lacks(can: VideoCapability, asked: VideoShape) -> list[str]:
    lacks = []
    if asked.mode not in can.modes:
        lacks.append(_outside("mode", asked.mode, can.modes))
    if asked.duration_s is not None and asked.duration_s not in can.durations_s:
        lacks.append(_outside("duration_s", asked.duration_s, can.durations_s))
    if asked.resolution is not None and asked.resolution not in can.resolutions:
        lacks.append(_outside("resolution", asked.resolution, can.resolutions))
    if asked.aspect_ratio is not None and asked.aspect_ratio not in can.aspect_ratios:
        lacks.append(_outside("aspect_ratio", asked.aspect_ratio, can.aspect_ratios))
    if asked.images > can.max_images:
        lacks.append(_above("images", asked.images, can.max_images))
    if asked.videos > can.max_videos:
        lacks.append(_above("videos", asked.videos, can.max_videos))
    if asked.audios > can.max_audios:
        lacks.append(_above("audios", asked.audios, can.max_audios))
    if asked.audio and not can.audio:
        lacks.append("audio")
    if can.constraints:
        lacks += _broken(can.constraints, asked)
    if can.fps is not None and asked.fps is not None and asked.fps not in can.fps:
        lacks.append(_outside("fps", asked.fps, can.fps))
    if can.max_samples is not None and asked.sample_count > can.max_samples:
        lacks.append(_above("sample_count", asked.sample_count, can.max_samples))
    if can.inputs is not None:
        lacks += _refused(can.inputs, FRAMES, asked)
    if can.controls is not None:
        lacks += _refused(can.controls, CONTROLS, asked)
    return lacks


def _image_lacks(can: ImageCapability, asked: ImageShape) -> list[str]:
    lacks = []
    if asked.mode not in can.modes:
        lacks.append(_outside("mode", asked.mode, can.modes))
    if asked.size is not None and asked.size not in can.sizes:
        lacks.append(_outside("size", asked.size, can.sizes))
    if asked.n > can.max_n:
        lacks.append(_above("n", asked.n, can.max_n))
    if asked.images > can.max_images:
        lacks.append(_above("images", asked.images, can.max_images))
    if can.constraints:
        lacks += _broken(can.constraints, asked)
    if can.controls is not None:
        lacks += _refused(can.controls, CONTROLS, asked)
    return lacks


def _broken(constraints: tuple[Constraint, ...], asked: Shape) -> list[str]:
    return [
        _outside(field, getattr(asked, field), allowed, constraint.when)
        for constraint in constraints
        if holds(constraint.when, asked)
        for field, allowed in constraint.require
        if getattr(asked, field) not in allowed
    ]


def _refused(declared: Mapping[str, bool], names: tuple[str, ...], asked: Shape) -> list[str]:
    return [name for name in names if getattr(asked, name) and declared.get(name) is False]


def _outside(field: str, value: Any, allowed: Allowed, when: When = ()) -> str:
    condition = " and ".join(f"{name} {bound}" for name, bound in when)
    return f"{field} {value} (can {show(allowed)}{' with ' + condition if condition else ''})"


def _above(field: str, value: int, most: int) -> str:
    return f"{field} {value} (at most {most})"


def contradictions(capability: Capability) -> list[str]:
    """Constraints that no request could ever meet: a gate before a version takes effect."""
    offered: dict[str, Allowed] = {"mode": capability.modes}
    if isinstance(capability, VideoCapability):
        offered |= {
            "duration_s": capability.durations_s,
            "resolution": capability.resolutions,
            "aspect_ratio": capability.aspect_ratios,
        }
    else:
        offered |= {"size": capability.sizes}
    return [
        f"{field}: requires {show(allowed)}, but the supply has only {show(offered[field])}"
        for constraint in capability.constraints
        for field, allowed in constraint.require
        if field in offered and not _meet(allowed, offered[field])
    ]


def _meet(one: Allowed, other: Allowed) -> bool:
    if isinstance(one, frozenset):
        return any(value in other for value in one)
    if isinstance(other, frozenset):
        return any(value in one for value in other)
    ends = ((one.least, other.most), (other.least, one.most))
    return all(least is None or most is None or least <= most for least, most in ends)
