"""Serves the product's decisions: `python -m tests.benchmarks.routing_product SIZE WORK`."""

import json
import sys
from typing import Any

from dispatch.routing.replay import replay
from dispatch.routing.router import route
from dispatch.routing.scenario import documents_of, parse_scenario
from dispatch.routing.snapshot import snapshot
from dispatch.routing.types import RoutingInput
from tests.benchmarks.serving import serve
from tests.rules.scenarios import VIDEO_CAPABILITY, channel, per_second, scenario, supply


def of_size(size: int) -> dict[str, Any]:
    """A seventh is draining, a seventh can't do it, a seventh is full; five supplies share a channel."""
    channels = {f"c{number}": channel(capacity=100, group="shared") for number in range(-(-size // 5))}
    names = [f"s{number:04}" for number in range(size)]
    supplies = {name: _supply(number, channels) for number, name in enumerate(names)}
    bindings = [{"supply": name, "tier": "exact", "priority": number} for number, name in enumerate(names)]
    policy = {"order": "stable_first", "max_cost": "30.00", "stable_cost_multiplier_limit": 3.0}
    groups = {"shared": {"capacity": 100_000, "used": 5}}
    return scenario(
        supplies,
        bindings,
        channels=channels,
        groups=groups,
        policy=policy,
        request={"images": 2, "videos": 1},
    )


def _supply(number: int, channels: dict[str, Any]) -> dict[str, Any]:
    multipliers = [{"when": {"resolution": "1080p"}, "factor": "1.5"}]
    price = per_second(f"0.{30 + number % 60}", multipliers=multipliers)
    limits = {"max_videos": 0} if number % 7 == 1 else {}
    constraints = [{"when": {"resolution": "1080p"}, "require": {"duration_s": [8]}}]
    return supply(
        f"c{number % len(channels)}",
        state="draining" if number % 7 == 2 else "enabled",
        used=5 if number % 7 == 3 else number % 4,
        successes=196 - number % 40,
        price=price,
        capability=dict(VIDEO_CAPABILITY) | limits | {"constraints": constraints},
    )


def checked(size: int) -> RoutingInput:
    """The figure is void if the decision is not whole, or does not replay."""
    document = of_size(size)
    inputs = parse_scenario(document)
    decision = route(inputs)
    if decision.outcome != "chosen" or len(decision.findings) != size:
        raise SystemExit(f"{decision.outcome}, {len(decision.findings)} findings")
    if differences := replay(json.loads(json.dumps(snapshot(inputs, decision))), documents_of(document)):
        raise SystemExit("\n".join(differences))
    return inputs


if __name__ == "__main__":
    measured = checked(int(sys.argv[1]))
    if sys.argv[2] == "decision and snapshot":
        serve(lambda: snapshot(measured, route(measured)))
    else:
        serve(lambda: route(measured))
