"""What the suite must know of each adapter, written out from the provider's documents.

A new adapter adds one case here and its golden requests; the suite itself does not change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.providers.registry import ADAPTERS
from catalog.providers.types import Adapter, NormalizedRequest, SupplyTarget

VIDEO: Mapping[str, Any] = {
    "modality": "video",
    "mode": "text_to_video",
    "prompt": "A lighthouse in a storm",
    "duration_s": 5,
    "resolution": "720p",
    "aspect_ratio": "16:9",
    "audio": False,
    "sample_count": 1,
    "real_person": False,
    "billing_mode": "per_second",
    "degradation": "strict",
    "routing_mode": "preferred",
}
IMAGE: Mapping[str, Any] = {
    "modality": "image",
    "mode": "text_to_image",
    "prompt": "A lighthouse in a storm",
    "size": "1024x1024",
    "n": 1,
    "degradation": "strict",
    "routing_mode": "preferred",
}


def asset(name: str) -> dict[str, str]:
    return {"url": f"https://assets.example/{name}?signature=abc"}


def without(request: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in names}


@dataclass(frozen=True)
class Refusal:
    """One documented error: its code and HTTP status, and what they mean in our words."""

    code: str
    status: int
    means: tuple[str, str, bool, str]  # category, scope, retryable, code


@dataclass(frozen=True)
class Case:
    """`legal` by the name of their golden file. `words` maps raw statuses to normalized ones."""

    adapter: Adapter
    supplies: Mapping[str, SupplyTarget]  # by modality
    legal: Mapping[str, NormalizedRequest]
    illegal: Mapping[str, NormalizedRequest]  # by a word of the reason
    words: Mapping[str, str]
    refusals: tuple[Refusal, ...]
    failures: tuple[Refusal, ...] = ()  # of a task that was accepted; the status has no meaning
    output_lifetime_s: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)  # one that calls back
    bad_configs: tuple[Mapping[str, Any], ...] = ()

    def supply_for(self, request: NormalizedRequest) -> SupplyTarget:
        return self.supplies[request["modality"]]


_INPUT = ("request", "request", False, "invalid_input")
_SAFE_IN = ("content", "request", False, "safety_input")
_SAFE_OUT = ("content", "request", False, "safety_output")
_PERSON = ("content", "request", False, "real_person_policy")
_MODEL = ("supply", "supply", True, "model_not_found")
_RATE = ("capacity", "supply", True, "rate_limited")
_BUSY = ("capacity", "supply", True, "overloaded")

_FRAMES = {"first_frame": asset("first.png"), "last_frame": asset("last.png")}

ARK = Case(
    adapter=ADAPTERS["ark"],
    supplies={
        "video": SupplyTarget("doubao-seedance-2-0", capability={"audio": True}, modality="video"),
        "image": SupplyTarget("doubao-seedream-5-0", modality="image"),
    },
    legal={
        "ark_text_to_video": VIDEO,
        "ark_text_to_video_least": {"modality": "video", "mode": "text_to_video", "prompt": "A lighthouse"},
        "ark_text_to_video_all": {**VIDEO, "audio": True, "seed": 7, "fps": 24, "duration_s": 10.0},
        "ark_image_to_video": {**VIDEO, "mode": "image_to_video", "first_frame": asset("first.png")},
        "ark_first_last_frame": {**VIDEO, "mode": "first_last_frame", **_FRAMES},
        "ark_references": {
            **VIDEO,
            "reference_images": [asset("1.png"), asset("2.png")],
            "reference_videos": [asset("3.mp4")],
            "reference_audios": [asset("4.mp3")],
        },
        "ark_video_to_video": {**VIDEO, "mode": "video_to_video", "reference_videos": [asset("3.mp4")]},
        "ark_text_to_image": IMAGE,
        "ark_text_to_image_seed": {**IMAGE, "size": "2K", "seed": 7},
        "ark_image_edit": {**IMAGE, "mode": "image_edit", "reference_images": [asset("1.png")]},
        "ark_image_edit_two": {
            **IMAGE,
            "mode": "image_edit",
            "reference_images": [asset("1.png"), asset("2.png")],
        },
    },
    illegal={
        "mode extend": {**VIDEO, "mode": "extend"},
        "negative_prompt": {**VIDEO, "negative_prompt": "rain"},
        "sample_count 2": {**VIDEO, "sample_count": 2},
        "fps 30": {**VIDEO, "fps": 30},
        "resolution 4k": {**VIDEO, "resolution": "4k"},
        "aspect_ratio 2:1": {**VIDEO, "aspect_ratio": "2:1"},
        "duration_s 5.5": {**VIDEO, "duration_s": 5.5},
        "duration_s 0": {**VIDEO, "duration_s": 0},
        "seed 4294967296": {**VIDEO, "seed": 2**32},
        "exclude": {**VIDEO, "first_frame": asset("1.png"), "reference_images": [asset("2.png")]},
        "last_frame without": {**VIDEO, "last_frame": asset("1.png")},
        "reference_audios without": {**VIDEO, "reference_audios": [asset("1.mp3")]},
        "without an image": {**VIDEO, "mode": "image_to_video"},
        "without both frames": {**VIDEO, "mode": "first_last_frame", "first_frame": asset("1.png")},
        "without a video": {**VIDEO, "mode": "video_to_video"},
        "prompt is missing": without(VIDEO, "prompt"),
        "no web address": {**VIDEO, "first_frame": {"asset": "ast_1"}},
        "n 2": {**IMAGE, "n": 2},
        "negative_prompt: ": {**IMAGE, "negative_prompt": "rain"},
        "size huge": {**IMAGE, "size": "huge"},
        "image_edit without": {**IMAGE, "mode": "image_edit"},
        "prompt is ": without(IMAGE, "prompt"),
    },
    words={
        "queued": "provider_queued",
        "running": "running",
        "succeeded": "succeeded",
        "failed": "failed",
        "cancelled": "cancelled",
        "expired": "expired",
        "SUCCEEDED": "succeeded",
        " succeed ": "succeeded",
        "canceled": "cancelled",
        "unknown": "unknown",
        "": "unknown",
        "quantizing": "unknown",
    },
    refusals=(
        Refusal("MissingParameter", 400, _INPUT),
        Refusal("InvalidParameter", 400, _INPUT),
        Refusal("InvalidParameter.duration", 400, _INPUT),
        Refusal("InvalidEndpoint.ClosedEndpoint", 400, _MODEL),
        Refusal("SensitiveContentDetected", 400, _SAFE_IN),
        Refusal("InputTextSensitiveContentDetected", 400, _SAFE_IN),
        Refusal("InputTextSensitiveContentDetected.PolicyViolation", 400, _SAFE_IN),
        Refusal("InputImageSensitiveContentDetected", 400, _SAFE_IN),
        Refusal("InputImageSensitiveContentDetected.PrivacyInformation", 400, _PERSON),
        Refusal("InputImageSensitiveContentDetected", 403, _SAFE_IN),
        Refusal("InputTextSensitiveContentDetected", 500, _SAFE_IN),
        Refusal("AuthenticationError", 401, ("supply", "channel", True, "auth")),
        Refusal("AccountOverdueError", 403, ("supply", "channel", True, "balance")),
        Refusal("AccessDenied", 403, ("supply", "channel", True, "permission")),
        Refusal("InvalidEndpointOrModel.NotFound", 404, _MODEL),
        Refusal("ModelNotOpen", 404, _MODEL),
        Refusal("RateLimitExceeded.EndpointRPMExceeded", 429, _RATE),
        Refusal("RateLimitExceeded.EndpointTPMExceeded", 429, _RATE),
        Refusal("ModelAccountRpmRateLimitExceeded", 429, _RATE),
        Refusal("ModelAccountTpmRateLimitExceeded", 429, _RATE),
        Refusal("QuotaExceeded", 429, ("capacity", "supply", True, "quota")),
        Refusal("ModelLoadingError", 429, _BUSY),
        Refusal("ServerOverloaded", 429, _BUSY),
        Refusal("SomethingNew", 400, ("supply", "supply", False, "internal_permanent")),
        Refusal("NewSensitiveContentDetected", 400, ("supply", "supply", False, "internal_permanent")),
    ),
    failures=(
        Refusal("OutputVideoSensitiveContentDetected", 0, _SAFE_OUT),
        Refusal("OutputVideoSensitiveContentDetected.PolicyViolation", 0, _SAFE_OUT),
        Refusal("OutputAudioSensitiveContentDetected", 0, _SAFE_OUT),
        Refusal("InternalServiceError", 0, ("supply", "supply", True, "internal_retryable")),
        Refusal("SomethingNew", 0, ("supply", "supply", False, "internal_permanent")),
    ),
    output_lifetime_s=24 * 3600,
    config={"callbacks": False},
    bad_configs=({"callbacks": "https://frameyard.example"}, {"callback": True}),
)

CASES: tuple[Case, ...] = (ARK,)
