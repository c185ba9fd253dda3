"""Snapshots as the dispatcher stores them, made by the real pipeline from a scenario of named supplies."""

from copy import deepcopy
from typing import Any

from dispatch.routing.router import route
from dispatch.routing.scenario import parse_scenario
from dispatch.routing.snapshot import snapshot

_CAPABILITY = {
    "modes": ["text_to_video", "image_to_video"],
    "durations_s": {"min": 4, "max": 15},
    "resolutions": ["720p", "1080p"],
    "aspect_ratios": ["16:9", "9:16"],
    "max_images": 9,
    "max_videos": 3,
    "max_audios": 3,
    "audio": True,
    "constraints": [],
}
_RULE = {
    "from_profile": "933",
    "to_profile": "900",
    "drop_inputs": ["reference_videos", "reference_audios"],
    "verified": True,
    "published": True,
}

BUSY: dict[str, Any] = {
    "now": "2026-11-30T11:41:09Z",
    "model": {
        "slug": "seedance-2.0-933",
        "modality": "video",
        "profile": "933",
        "degradation": "best_effort",
    },
    "policy": {"order": "stable_first", "min_samples": 20, "probe_every": 0},
    "request": {
        "mode": "text_to_video",
        "duration_s": 10,
        "resolution": "1080p",
        "aspect_ratio": "16:9",
        "images": 9,
        "videos": 2,
        "audios": 1,
    },
    "job": {"selection_number": 3, "attempt": 1},
    "channels": {
        "kestrel-main": {"capacity": 8, "used": 3},
        "osprey-2": {"health": "recovering", "recovery_successes": 3, "capacity": 8, "used": 1},
        "heron-a": {"health": "circuit_open", "capacity": 6, "used": 0},
        "wren-x": {"capacity": 4, "used": 2, "unknown": 1},
    },
    "supplies": {
        "kestrel-hd": {"channel": "kestrel-main", "capacity": 5, "used": 2, "samples": 200, "successes": 196},
        "kestrel-lite": {"channel": "kestrel-main", "capacity": 5, "used": 1, "samples": 90, "successes": 71},
        "osprey-pro": {"channel": "osprey-2", "capacity": 5, "used": 1, "samples": 400, "successes": 388},
        "heron-v3": {"channel": "heron-a", "capacity": 4, "used": 0, "samples": 60, "successes": 30},
        "finch": {
            "channel": "wren-x",
            "capacity": 2,
            "used": 1,
            "unknown": 1,
            "samples": 12,
            "successes": 12,
        },
        "swift": {"channel": "wren-x", "capacity": 4, "used": 0, "samples": 40, "successes": 39},
        "lark": {"channel": "wren-x", "state": "disabled", "capacity": 2, "used": 0},
        "wren-900": {"channel": "wren-x", "capacity": 4, "used": 0, "samples": 30, "successes": 30},
    },
    "bindings": [
        {"supply": "kestrel-hd", "tier": "exact", "priority": 900_000},
        {"supply": "kestrel-lite", "tier": "exact", "priority": 800_000},
        {"supply": "osprey-pro", "tier": "exact", "priority": 700_000},
        {"supply": "heron-v3", "tier": "exact", "priority": 400_000},
        {"supply": "finch", "tier": "exact", "priority": 300_000},
        {"supply": "swift", "tier": "exact", "priority": 90_000},
        {"supply": "lark", "tier": "exact", "priority": 100_000},
        {"supply": "wren-900", "tier": "degraded", "rule": _RULE},
    ],
}
_PRICES = {"kestrel-hd": "0.042", "kestrel-lite": "0.030", "osprey-pro": "0.039", "swift": "0.020"}
_SHORTER = {"swift": {"min": 4, "max": 6}}


_USUAL: dict[str, Any] = {"state": "enabled", "health": "healthy", "used": 0}


def busy_scenario(**changes: Any) -> dict[str, Any]:
    """Eight candidates, one for each way to end; `changes` replace top-level keys."""
    scenario = deepcopy(BUSY) | changes
    for name, supply in scenario["supplies"].items():
        supply["capability"] = _CAPABILITY | ({"durations_s": _SHORTER[name]} if name in _SHORTER else {})
        price = _PRICES.get(name, "0.045")
        supply["price"] = {"mode": "per_second", "currency": "USD", "per_second": price}
    return scenario


def _complete(scenario: dict[str, Any]) -> dict[str, Any]:
    """The keys that the format asks for, where a scenario here leaves out the usual value."""
    complete = deepcopy(scenario)
    for each in complete["channels"].values():
        each |= _USUAL | each
    for each in complete["supplies"].values():
        each |= _USUAL | {"samples": 0, "successes": 0} | each
    return complete


def recorded(scenario: dict[str, Any] | None = None) -> dict[str, Any]:
    return snapshot_of(_complete(scenario or busy_scenario()))


def snapshot_of(scenario: dict[str, Any]) -> dict[str, Any]:
    """Of a whole scenario document."""
    inputs = parse_scenario(scenario)
    return snapshot(inputs, route(inputs))


def recorded_switch() -> dict[str, Any]:
    """The second round of the same job, after kestrel-hd failed."""
    return recorded(busy_scenario(job={"tried": ["kestrel-hd"], "attempt": 2, "spent": "0.42"}))


_IMAGE_CAPABILITY = {"modes": ["text_to_image"], "max_n": 4, "max_images": 0, "constraints": []}
IMAGE: dict[str, Any] = {
    "now": "2026-11-30T11:41:09Z",
    "model": {"slug": "seedream-4", "modality": "image", "profile": "image"},
    "policy": {"order": "cost_first", "probe_every": 0},
    "request": {"mode": "text_to_image", "size": "1024x1024", "n": 1, "images": 0},
    "job": {"selection_number": 3, "attempt": 1},
    "channels": {"kestrel-main": {"capacity": 8, "used": 3}},
    "supplies": {
        name: {
            "channel": "kestrel-main",
            "capacity": 5,
            "samples": 40,
            "successes": 39,
            "capability": {
                "modes": ["text_to_image"],
                "sizes": sizes,
                "max_n": 4,
                "max_images": 0,
                "constraints": [],
            },
            "price": {"mode": "per_request", "currency": "USD", "per_request": "0.03"},
        }
        for name, sizes in (("dream-a", ["1024x1024"]), ("dream-b", ["2048x2048"]))
    },
    "bindings": [{"supply": "dream-a", "tier": "exact"}, {"supply": "dream-b", "tier": "exact"}],
}


def recorded_image() -> dict[str, Any]:
    return recorded(IMAGE)
