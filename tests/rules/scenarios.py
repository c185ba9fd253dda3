"""Scenario documents for tests: one good case, to be changed where a test speaks of it."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.types import Decision

VIDEO_CAPABILITY: Mapping[str, Any] = {
    "modes": ["text_to_video", "image_to_video"],
    "durations_s": {"min": 4, "max": 15},
    "resolutions": ["720p", "1080p"],
    "aspect_ratios": ["16:9", "9:16"],
    "max_images": 9,
    "max_videos": 3,
    "max_audios": 3,
    "audio": True,
}
IMAGE_CAPABILITY: Mapping[str, Any] = {
    "modes": ["text_to_image", "image_edit"],
    "sizes": ["1024x1024", "1536x1024"],
    "max_n": 4,
    "max_images": 3,
}
VIDEO_REQUEST: Mapping[str, Any] = {
    "mode": "text_to_video",
    "duration_s": 5,
    "resolution": "720p",
    "aspect_ratio": "16:9",
}
IMAGE_REQUEST: Mapping[str, Any] = {"mode": "text_to_image", "size": "1024x1024", "n": 1}
RULE: Mapping[str, Any] = {
    "from_profile": "933",
    "to_profile": "900",
    "drop_inputs": ["reference_videos", "reference_audios"],
    "verified": True,
    "published": True,
}


def per_second(amount: str, **more: Any) -> dict[str, Any]:
    return {"mode": "per_second", "currency": "USD", "per_second": amount, **more}


def fixed(amount: str, min_s: int = 4, max_s: int = 15) -> dict[str, Any]:
    brackets = [{"min_s": min_s, "max_s": max_s, "fixed": amount}]
    return {"mode": "per_second", "currency": "USD", "brackets": brackets}


def per_request(amount: str, **more: Any) -> dict[str, Any]:
    return {"mode": "per_request", "currency": "USD", "per_request": amount, **more}


def supply(channel: str = "east", **changes: Any) -> dict[str, Any]:
    good = {
        "channel": channel,
        "state": "enabled",
        "health": "healthy",
        "capacity": 5,
        "used": 0,
        "samples": 200,
        "successes": 196,
        "capability": dict(VIDEO_CAPABILITY),
        "price": per_second("0.30"),
    }
    return good | changes


def image_supply(channel: str = "east", **changes: Any) -> dict[str, Any]:
    return supply(channel, capability=dict(IMAGE_CAPABILITY), price=per_request("0.04")) | changes


def channel(**changes: Any) -> dict[str, Any]:
    return {"state": "enabled", "health": "healthy", "capacity": 8, "used": 0} | changes


def exact(*names: str) -> list[dict[str, Any]]:
    return [{"supply": name, "tier": "exact"} for name in names]


def fallback(*names: str) -> list[dict[str, Any]]:
    return [{"supply": name, "tier": "fallback"} for name in names]


def degraded(*names: str) -> list[dict[str, Any]]:
    return [{"supply": name, "tier": "degraded", "rule": dict(RULE)} for name in names]


def scenario(
    supplies: Mapping[str, Any],
    bindings: list[dict[str, Any]] | None = None,
    *,
    modality: str = "video",
    channels: Mapping[str, Any] | None = None,
    groups: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    request: Mapping[str, Any] | None = None,
    job: Mapping[str, Any] | None = None,
    refusals: list[dict[str, Any]] | None = None,
    fx: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A document; every supply is bound as exact unless `bindings` are given."""
    good_request = VIDEO_REQUEST if modality == "video" else IMAGE_REQUEST
    good_model = {"slug": "m", "modality": modality, "profile": "933", "degradation": "best_effort"}
    return deepcopy(
        {
            "now": "2026-06-01T12:00:00Z",
            "model": good_model | dict(model or {}),
            "policy": {"order": "cost_first"} | dict(policy or {}),
            "request": dict(good_request) | dict(request or {}),
            "job": dict(job or {}),
            "fx": dict(fx or {}),
            "channels": dict(channels or {"east": channel(), "west": channel()}),
            "groups": dict(groups or {}),
            "supplies": dict(supplies),
            "bindings": exact(*supplies) if bindings is None else bindings,
            "refusals": refusals or [],
        }
    )


def decided(document: Mapping[str, Any]) -> Decision:
    return route(parse_scenario(document))


def reasons(document: Mapping[str, Any]) -> dict[str, str | None]:
    """By candidate key; None for the chosen and the ranked."""
    return {finding.candidate.key: finding.reason for finding in decided(document).findings}
