"""Whole scenario documents drawn by a seed, mixed so that every outcome and reason comes up.

Drawn part by part by Hypothesis they cost fifty times as much, and shrink no better than by reading them.
"""

from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.rules.scenarios import (
    IMAGE_CAPABILITY,
    RULE,
    VIDEO_CAPABILITY,
    fixed,
    per_request,
    per_second,
    scenario,
)

TIERS = ("exact", "fallback", "degraded")
TROUBLE = ("degraded", "probing", "recovering", "circuit_open", "disabled")


LITTLE, SOME, MUCH = 0.03, 0.12, 0.4  # how often something is wrong


def scenarios(*trouble: float, **policy: Any) -> SearchStrategy[dict[str, Any]]:
    """`policy` fixes parameters that a test needs."""
    among = trouble or (LITTLE, SOME, MUCH)
    return st.integers(0, 2**32).map(lambda seed: drawn(Random(seed), among, **policy))


def drawn(random: Random, among: tuple[float, ...] = (LITTLE, SOME, MUCH), **policy: Any) -> dict[str, Any]:
    modality = random.choice(["video", "video", "image"])
    trouble = random.choice(among)
    names = [f"s{number}" for number in range(random.randint(1, 7))]
    return scenario(
        {name: _supply(random, modality, trouble) for name in names},
        _bindings(random, names, trouble),
        modality=modality,
        channels={name: _place(random, trouble) | _group(random) for name in ("east", "west")},
        groups={"shared": {"capacity": 12, "used": random.choice([0, 0, 5, 12, 15])}},
        model={
            "degradation": random.choice(["strict", "best_effort", "best_effort"]),
            "emergency_override": random.random() < 0.5,
            "baseline": random.choice([None, None, "1.50"]),
        },
        policy=_policy(random) | policy,
        request=_video_request(random) if modality == "video" else _image_request(random),
        job={
            "tried": random.choice([[], [], [], ["s0"]]),
            "spent": random.choice(["0", "2.50"]),
            "selection_number": random.randint(0, 6),
            "attempt": random.choice([1, 1, 1, 2]),
        },
        refusals=_refusals(random, names, trouble),
        fx=random.choice([{}, {"CNY": "0.1391"}]),
    )


def _place(random: Random, trouble: float) -> dict[str, Any]:
    """What a channel and a supply have in common."""
    health = random.choice(TROUBLE) if random.random() < 2 * trouble else "healthy"
    place: dict[str, Any] = {
        "state": random.choice(["draining", "disabled"]) if random.random() < trouble / 2 else "enabled",
        "health": health,
        "capacity": random.randint(1, 12),
        "used": random.choice([1, 5, 12]) if random.random() < 2 * trouble else 0,
        "unknown": random.choice([1, 2]) if random.random() < trouble / 2 else 0,
        "unknown_limit": random.choice([None, 2, 3]),
    }
    if health == "recovering":
        place |= {"recovery_successes": random.randint(2, 4), "used_in_epoch": random.choice([None, 0, 1])}
    return place


def _group(random: Random) -> dict[str, Any]:
    return {"group": random.choice([None, None, "shared"])}


def _supply(random: Random, modality: str, trouble: float) -> dict[str, Any]:
    samples = random.choice([0, 3, 20, 50, 400])
    it = _place(random, trouble) | {
        "channel": random.choice(["east", "west"]),
        "samples": samples,
        "successes": random.randint(samples * 3 // 4, samples),
    }
    if modality == "image":
        capability = dict(IMAGE_CAPABILITY) | {"max_n": random.randint(1, 4)}
        return it | {"capability": capability, "price": _image_price(random)}
    less = {"max_images": random.choice([0, 9]), "max_videos": 0} if random.random() < trouble else {}
    return it | {
        "capability": dict(VIDEO_CAPABILITY) | less,
        "price": _video_price(random),
        "real_person": random.choice(["allowed", "allowed", "allowed", "restricted", "restricted", "denied"]),
    }


def _amount(random: Random) -> str:
    cents = random.randint(1, 60)
    return f"{cents // 100}.{cents % 100:02}"


def _video_price(random: Random) -> dict[str, Any] | None:
    amount = _amount(random)
    louder = [{"when": {"audio": True}, "factor": "1.333"}]
    return random.choice(
        [
            *[per_second(amount)] * 4,
            per_second(amount, multipliers=louder),
            per_second(amount, currency="CNY"),
            fixed(f"{random.randint(1, 9)}.00"),
            per_request(amount),
            None,
        ]
    )


def _image_price(random: Random) -> dict[str, Any] | None:
    amount = _amount(random)
    return random.choice([*[per_request(amount)] * 6, per_second(amount), None])


def _policy(random: Random) -> dict[str, Any]:
    return {
        "order": random.choice(["stable_first", "cost_first", "manual_priority"]),
        "min_samples": random.choice([0, 1, 20, 100]),
        "success_band": random.choice([0.01, 0.02, 0.5]),
        "stable_cost_multiplier_limit": random.choice([1.0, 3.0, 50.0]),
        "fallback_cost_multiplier_limit": random.choice([1.0, 3.0, 50.0]),
        "max_cost": random.choice([None, "4.00", "30.00"]),
        "spill_when_saturated": random.random() < 0.5,
        "probe_every": random.choice([0, 1, 2]),
    }


def _video_request(random: Random) -> dict[str, Any]:
    return {
        "duration_s": random.randint(4, 15),
        "images": random.choice([0, 9]),
        "videos": random.choice([0, 2]),
        "audio": random.random() < 0.5,
        "real_person": random.random() < 0.4,
        "billing_mode": random.choice([*[None] * 9, "per_request"]),
        "degradation": random.choice([None, None, "strict", "best_effort"]),
        "max_cost": random.choice([None, None, "5.00"]),
    }


def _image_request(random: Random) -> dict[str, Any]:
    return {"n": random.randint(1, 4), "max_cost": random.choice([None, "5.00"])}


def _bindings(random: Random, names: list[str], trouble: float) -> list[dict[str, Any]]:
    tiers = ("exact", *TIERS) if random.random() < 0.7 else TIERS
    pairs = dict.fromkeys(
        (name, tier) for name in names for tier in random.sample(tiers, random.choice([1, 1, 2]))
    )
    return [_binding(random, name, tier, trouble) for name, tier in pairs]


def _binding(random: Random, name: str, tier: str, trouble: float) -> dict[str, Any]:
    bound: dict[str, Any] = {
        "supply": name,
        "tier": tier,
        "priority": random.choice([0, 0, 5, 1_000_000]),
        "enabled": random.random() > trouble / 3,
    }
    return bound | (
        {"rule": dict(RULE) | {"published": random.random() > trouble}} if tier == "degraded" else {}
    )


def _refusals(random: Random, names: list[str], trouble: float) -> list[dict[str, Any]]:
    records = [
        {"state": "frozen"},
        {"state": "cooldown", "next_probe_at": "2026-06-01T13:00:00Z"},
        {"state": "cooldown", "next_probe_at": "2026-06-01T11:00:00Z"},
    ]
    return [{"supply": name} | random.choice(records) for name in names if random.random() < trouble / 2]
