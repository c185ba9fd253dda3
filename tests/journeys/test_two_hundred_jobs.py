"""Two hundred jobs by eight clients, while workers are killed: each delivered, none paid twice."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
import requests
from django.utils import timezone

from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.simulator.server import Simulator
from dispatch.lifecycle import FINAL_JOB_STATES
from dispatch.models import Attempt, Job
from tests.engine import DEMO_CATALOGUE
from tests.invariants import assert_invariants
from tests.journeys.conftest import Start, load_catalogue
from tests.journeys.processes import PATIENCE_S, Running, kill, wait_until

pytestmark = [pytest.mark.journey, pytest.mark.patient]
JOBS, CLIENTS = 200, 8


def wide_catalogue() -> str:
    """The demo catalogue, with enough slots that the workers, not the suppliers, are what is tried."""
    text = DEMO_CATALOGUE.read_text()
    for concurrency in (8, 5, 4, 3, 2):
        text = text.replace(f"concurrency: {concurrency}\n", "concurrency: 250\n")
    return text


def a_worker_of(cluster: Running) -> psutil.Process:
    """Once there is one: a cluster whose worker was killed may be replaced as a whole."""
    seen: list[psutil.Process] = []

    def there() -> bool:
        seen[:] = _below_sentinel(cluster)
        return bool(seen)

    wait_until(there, PATIENCE_S, "the cluster has its workers")
    return seen[0]


def _below_sentinel(cluster: Running) -> list[psutil.Process]:
    """The workers come first."""
    with suppress(psutil.NoSuchProcess, IndexError):
        sentinel = psutil.Process(cluster.pid).children()[0].children()[0]
        return sentinel.children()
    return []


def test_every_job_is_delivered_and_none_is_paid_twice_though_workers_are_killed(
    start: Start, api: str, simulator: Simulator
) -> None:
    load_catalogue(simulator, wide_catalogue())
    customer = create_customer("acme", timezone.now(), group="studio", deposit_micros=10**12)
    secret = issue_key(customer)[1].secret
    traffic = start("worker", "traffic")
    start("worker", "control")
    start("pulse")

    def post(number: int) -> str:
        body = {
            "model": "seedance-2.0-933",
            "prompt": f"scene {number}",
            "duration_s": 4,
            "resolution": "480p",
        }
        headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": f"order-{number}"}
        response = requests.post(f"{api}jobs/", json=body, headers=headers, timeout=PATIENCE_S)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    def sent() -> int:
        return len(simulator.world.log()["posts"])

    with ThreadPoolExecutor(CLIENTS) as clients:
        posted = clients.map(post, range(JOBS))
        for killed_at in (20, 90):
            wait_until(lambda at=killed_at: sent() >= at, 3 * PATIENCE_S, "jobs are sent")  # type: ignore[misc]
            kill(a_worker_of(traffic).pid)
        ids = list(posted)
    assert len(set(ids)) == JOBS

    began = time.monotonic()
    wait_until(lambda: _pending() == 0, 8 * PATIENCE_S, "every job ends")
    assert set(Job.objects.values_list("state", flat=True)) == {"succeeded"}, time.monotonic() - began
    references = set(Attempt.objects.values_list("client_request_key", flat=True))
    accepted = simulator.world.log()["accepted"]
    assert sum(accepted.values()) == JOBS
    assert set(accepted.values()) == {1}
    assert set(accepted) <= references
    assert_invariants()


def _pending() -> int:
    return Job.objects.exclude(state__in=FINAL_JOB_STATES).count()
