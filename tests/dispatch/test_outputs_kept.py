"""What was delivered is ours for as long as its answer says, and then clearly over (S08, S16)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from catalog.providers import registry
from catalog.providers.http import Transport
from catalog.providers.types import JobStatus, PollResult
from catalog.providers.volcengine_ark import VolcengineArk
from dispatch.lifecycle import AttemptState
from dispatch.models import Asset, ProviderEvent
from dispatch.services.expire_outputs import expire_outputs
from health.models import SupplyHealth
from tests.engine import Engine

A = AttemptState


class GuardedArk(VolcengineArk):
    """As if its outputs were given only to who shows the account's key."""

    def poll(self, transport: Transport, provider_job_id: str) -> PollResult:
        result = super().poll(transport, provider_job_id)
        if not isinstance(result, JobStatus):
            return result
        shown: Mapping[str, str] = {"Authorization": f"Bearer {transport.access.credential}"}
        return replace(result, outputs=tuple(replace(each, headers=shown) for each in result.outputs))


def script(engine: Engine, **do: Any) -> None:
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": do}]})


def test_an_output_behind_a_header_that_expires_in_a_minute_is_ours_a_day_later_until_its_stated_end(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, settings: LazySettings, tmp_path: Path
) -> None:
    """S16: copied before success is told; its end is stated, and after it the answer is 410."""
    settings.MEDIA_DIR, settings.OUTPUT_RETENTION_DAYS = tmp_path, 2
    monkeypatch.setattr(registry, "ADAPTERS", {"ark": GuardedArk()})
    script(engine, output="needs_header", output_lifetime_s=60)
    job = engine.job()
    engine.finish(job)
    assert job.state == "succeeded"
    delivered_at = engine.now
    engine.now += timedelta(days=1)
    told = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()["outputs"][0]
    ends_at = datetime.fromisoformat(told["expires_at"])
    assert timedelta(days=2) - timedelta(minutes=2) <= ends_at - delivered_at <= timedelta(days=2)
    settings.OUTPUT_RETENTION_DAYS = 1
    expire_outputs(engine.now)
    answer = engine.api.get(told["url"])
    assert answer.status_code == 200, "a later setting breaks no promise"
    assert len(b"".join(answer.streaming_content)) == told["size_bytes"]
    engine.now = ends_at
    over = engine.api.get(told["url"])
    assert (over.status_code, over.json()["code"]) == (410, "output_expired")
    assert expire_outputs(engine.now) == 1
    assert expire_outputs(engine.now) == 0
    asset = Asset.objects.get()
    assert asset.removed_at == engine.now
    assert not [path for path in (tmp_path / "outputs").rglob("*") if path.is_file()]
    assert engine.api.get(told["url"]).status_code == 410
    again = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert (again["state"], again["outputs"][0]["sha256"]) == ("succeeded", told["sha256"])


def test_a_result_that_can_not_be_fetched_yet_is_generated_and_not_failed_and_counts_against_nobody(
    engine: Engine, settings: LazySettings, tmp_path: Path
) -> None:
    """S08, faults 35 and 38: the address breaks and expires, and our own store is down; then all is well."""
    script(engine, output_statuses=[504, 504, 403, 404], output_lifetime_s=30)
    job = engine.job()
    engine.step()
    down = tmp_path / "down"
    down.write_text("no directory: the store is down")
    up, settings.MEDIA_DIR = settings.MEDIA_DIR, down
    engine.run(15, step_s=3)
    assert engine.attempts(job) == [A.FETCHING]
    body = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert (body["state"], body["outputs"], body["error"]) == ("fetching_output", [], None)
    settings.MEDIA_DIR = up
    engine.finish(job, within_s=3_000)
    assert (job.state, engine.attempts(job)) == ("succeeded", [A.SUCCEEDED])
    assert ProviderEvent.objects.filter(kind="fetch", outcome="failed").count() >= 4
    assert len(engine.simulator.world.log()["posts"]) == 1
    assert not SupplyHealth.objects.exclude(state="healthy").exists()


def test_without_a_limit_outputs_are_kept_for_good(engine: Engine, settings: LazySettings) -> None:
    settings.OUTPUT_RETENTION_DAYS = 0
    job = engine.job()
    engine.finish(job)
    told = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()["outputs"][0]
    assert told["expires_at"] is None
    engine.now += timedelta(days=4_000)
    assert expire_outputs(engine.now) == 0
    assert engine.api.get(told["url"]).status_code == 200
