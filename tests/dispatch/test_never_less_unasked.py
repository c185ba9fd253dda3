"""S27: what was asked for is delivered, or said not to be; never something less in silence."""

from typing import Any

import pytest

from catalog.models import Supply
from catalog.revision import bump_revision
from dispatch.models import Job
from tests.engine import Engine

FAST = "beijing-seedance-2-0-fast"  # 720p at most


@pytest.mark.parametrize(
    ("degradation", "reason"), [("strict", "degradation_not_allowed"), ("best_effort", "capability_missing")]
)
def test_1080p_is_never_made_as_720p_whatever_degradation_is_allowed(
    engine: Engine, degradation: str, reason: str
) -> None:
    """No rule lowers a resolution, so the only healthy supply can't take it: the reason is kept and told."""
    Supply.objects.filter(slug__in=["beijing-seedance-2-0", "singapore-seedance-2-0"]).update(
        state="disabled"
    )
    bump_revision()
    job = engine.job(resolution="1080p", degradation=degradation)
    engine.run(10)
    body = shown(engine, job)
    assert (body["state"], body["queue"]["reason"], body["degraded"]) == ("queued", "no_candidate", False)
    decision = job.rounds.latest("number").snapshot["decision"]
    assert decision["candidates"][FAST]["reason"] == reason
    engine.run(1_300, step_s=60)
    body = shown(engine, job)
    assert (body["state"], body["error"]["code"]) == ("expired", "dispatch_deadline_exceeded")
    assert body["cost"]["charged"] == "0.00"
    assert engine.simulator.world.log()["posts"] == []


def shown(engine: Engine, job: Job) -> dict[str, Any]:
    return dict(engine.api.get(f"/api/v1/jobs/{job.public_id}/").json())
