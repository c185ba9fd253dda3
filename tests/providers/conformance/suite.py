"""What every adapter must do, whichever provider it speaks to; against its face of the simulator."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog.providers.http import Limits, Transport
from catalog.providers.types import Accepted, CompilePlan, JobStatus, SubmitOutcome, Window
from catalog.simulator.server import Simulator
from tests.factories import NOW
from tests.providers.cases import CASES, Case
from tests.providers.conftest import CALM, QUICK

GOLDEN = Path(__file__).parent.parent / "golden"
WINDOW = Window(NOW - timedelta(seconds=60), NOW + timedelta(seconds=60))
KEY = "fy-00000001"


def every(attribute: str) -> Any:
    """Parametrizes over the entries of one attribute of every case."""
    rows = [
        pytest.param(case, entry, id=f"{case.adapter.key}-{getattr(entry, 'code', entry)}")
        for case in CASES
        for entry in getattr(case, attribute)
    ]
    return pytest.mark.parametrize(("case", "entry"), rows)


def plan_of(case: Case, modality: str = "video") -> CompilePlan:
    request = next(each for each in case.legal.values() if each["modality"] == modality)
    plan = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(plan, CompilePlan)
    return plan


def submit(case: Case, client: Transport, key: str = KEY, modality: str = "video") -> SubmitOutcome:
    return case.adapter.submit(client, plan_of(case, modality), key, lambda: None)


def accepted(case: Case, client: Transport, key: str = KEY, modality: str = "video") -> Accepted:
    outcome = submit(case, client, key, modality)
    assert isinstance(outcome, Accepted), outcome
    return outcome


def poll(case: Case, client: Transport, job_id: str) -> JobStatus:
    result = case.adapter.poll(client, job_id)
    assert isinstance(result, JobStatus), result
    return result


def limits_for(answer: str) -> Limits:
    """Short where the answer never comes, or never ends."""
    return replace(QUICK, deadline_s=0.8) if answer in ("hang", "slow", "slow_headers") else CALM


def script(simulator: Simulator, call: str, times: int | None = None, **do: Any) -> None:
    simulator.script({"rules": [{"when": {"call": call}, "times": times, "do": do}]})


def accepted_at_provider(simulator: Simulator) -> dict[str, int]:
    return simulator.world.log()["accepted"]
