"""From a customer's request to the normalized one that is frozen with the job; pure."""

from collections.abc import Mapping
from typing import Any

from catalog.capability import Capability, lacking
from catalog.shape import IMAGE_MODES, shape_of
from dispatch.errors import InvalidRequest

# What decides how a request is made, not what is in it; kept with the normalized request.
_WISHES = ("routing_mode", "degradation", "billing_mode", "regions")
_VIDEO_CONTENT = (
    "mode",
    "prompt",
    "negative_prompt",
    "duration_s",
    "resolution",
    "aspect_ratio",
    "fps",
    "audio",
    "seed",
    "sample_count",
    "reference_images",
    "reference_videos",
    "reference_audios",
    "first_frame",
    "last_frame",
    "real_person",
)
_IMAGE_CONTENT = ("mode", "prompt", "negative_prompt", "size", "n", "seed", "reference_images")


_VIDEO_ONLY = frozenset(_VIDEO_CONTENT) - frozenset(_IMAGE_CONTENT) | {"billing_mode"}
_IMAGE_ONLY = frozenset(_IMAGE_CONTENT) - frozenset(_VIDEO_CONTENT)
AUTO = "auto"


def is_auto(body: Mapping[str, Any]) -> bool:
    """Whether the platform picks the model. Raises InvalidRequest where nobody does."""
    if body.get("routing_mode") == AUTO:
        return True
    model = body.get("model")
    if model is None:
        raise InvalidRequest("Name a model, or let routing_mode auto pick one.", "model")
    if model == AUTO and body.get("routing_mode") is not None:
        raise InvalidRequest("The model auto goes with routing_mode auto only.", "routing_mode")
    return bool(model == AUTO)


def modality_of(body: Mapping[str, Any]) -> str:
    """What a request without a model wants, by its fields. Raises InvalidRequest where they don't tell."""
    mode = body.get("mode")
    if mode is not None:
        return "image" if mode in IMAGE_MODES else "video"
    image, video = _IMAGE_ONLY & body.keys(), _VIDEO_ONLY & body.keys()
    if bool(image) == bool(video):
        raise InvalidRequest("Say mode, so that it is known whether a video or an image is wanted.", "mode")
    return "image" if image else "video"


def normalized(
    modality: str,
    body: Mapping[str, Any],
    limits: Capability,
    model_degradation: str,
    defaults: Mapping[str, Any],
) -> dict[str, Any]:
    """The request with every default written out, so that it means the same for ever.

    `limits` are the public model's; `defaults` its first values. Raises InvalidRequest, naming the field,
    for a field of the other modality or a value outside the limits."""
    content = _VIDEO_CONTENT if modality == "video" else _IMAGE_CONTENT
    _refuse_other_fields(body, (*content, *_WISHES), modality)
    request: dict[str, Any] = {"modality": modality}
    request |= {name: body[name] for name in (*content, *_WISHES) if body.get(name) is not None}
    for name, value in defaults.items():
        request.setdefault(name, value)
    request["mode"] = request.get("mode") or _mode_by_inputs(modality, request)
    request["degradation"] = _tightened(model_degradation, request.get("degradation"))
    request.setdefault("routing_mode", AUTO if body.get("model") == AUTO else "preferred")
    _refuse_beyond(limits, modality, request)
    return request


def defaults_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a request that does not say gets: the first value that the public model lists."""
    if "sizes" in parameters:
        return {"size": parameters["sizes"][0], "n": 1}
    durations = parameters["durations_s"]
    return {
        "duration_s": durations["min"] if isinstance(durations, Mapping) else durations[0],
        "resolution": parameters["resolutions"][0],
        "aspect_ratio": parameters["aspect_ratios"][0],
        "audio": False,
        "sample_count": 1,
        "real_person": False,
        "billing_mode": "per_second",
    }


def _refuse_other_fields(body: Mapping[str, Any], known: tuple[str, ...], modality: str) -> None:
    about_the_job = (
        "model",
        "max_cost_micros",
        "service_class",
        "project",
        "end_user",
        "max_queue_s",
        "metadata",
    )
    for name in body:
        if name not in known and name not in about_the_job:
            raise InvalidRequest(f"{name} has no meaning for a model of modality {modality}.", name)


def _mode_by_inputs(modality: str, request: Mapping[str, Any]) -> str:
    if modality == "image":
        return "image_edit" if request.get("reference_images") else "text_to_image"
    if request.get("first_frame") and request.get("last_frame"):
        return "first_last_frame"
    if request.get("first_frame"):
        return "image_to_video"
    return "text_to_video"


def _tightened(model: str, asked: str | None) -> str:
    """A customer may tighten best_effort to strict, never loosen."""
    if asked == "best_effort" and model == "strict":
        raise InvalidRequest("This model never degrades; leave degradation out or say strict.", "degradation")
    return asked or model


def _refuse_beyond(limits: Capability, modality: str, request: Mapping[str, Any]) -> None:
    lacks = lacking(limits, shape_of(modality, request))
    if lacks:
        raise InvalidRequest(f"This model does not take {'; '.join(lacks)}.", lacks[0].split(" ")[0])
