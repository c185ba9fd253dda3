"""docs/provider-simulator.md: each worked example, does to a real engine what the page says."""

import json
import re
from pathlib import Path
from typing import Any

from django.conf import settings

from dispatch.models import Attempt
from health.models import Alert, ChannelHealth, RefusalRecord
from tests.engine import Engine

PAGE = Path(settings.BASE_DIR) / "docs" / "provider-simulator.md"


def example(heading: str) -> dict[str, Any]:
    section = PAGE.read_text().split(f"## {heading}\n")[1]
    found = re.search(r"-d '(.+?)'\n```", section, re.DOTALL)
    assert found
    script: dict[str, Any] = json.loads(found[1].replace("simulated-account-beijing", "beijing-account-key"))
    return script


def test_the_submission_stays_uncertain(engine: Engine) -> None:
    engine.simulator.script(example("A submission that stays uncertain"))
    first = engine.job(model="seedance-1.0-pro")
    engine.run(60)
    attempt = Attempt.objects.get(job=first)
    assert attempt.supply.provider_model == "doubao-seedance-1-0-pro-250528"
    assert attempt.state == "submission_uncertain"
    assert Alert.objects.filter(code="submission_uncertain", resolved_at=None).exists()


def test_the_channels_circuit_opens_and_the_job_switches(engine: Engine) -> None:
    engine.simulator.script(example("A channel that fails until its circuit opens"))
    job = engine.job()
    engine.finish(job)
    assert job.state == "succeeded"
    assert engine.attempts(job) == ["failed", "succeeded"]
    assert ChannelHealth.objects.get(channel__slug="ark-beijing").state in ("circuit_open", "probing")


def test_refused_content_changes_no_circuit(engine: Engine) -> None:
    engine.simulator.script(example("Content refused"))
    job = engine.job()
    engine.finish(job)
    assert job.state == "failed"
    assert RefusalRecord.objects.count() == 1
    assert not ChannelHealth.objects.exclude(state="healthy").exists()
