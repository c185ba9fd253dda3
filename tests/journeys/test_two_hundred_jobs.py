"""Two hundred jobs by eight clients, while workers are killed: each delivered, none paid twice."""

import time
from concurrent.futures import ThreadPoolExecutor

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
from tests.journeys.processes import Running, kill, wait_until

pytestmark = [pytest.mark.journey, pytest.mark.patient]
JOBS, CLIENTS = 200, 8


def wide_catalogue() -> str:
    """The demo catalogue, with enough slots that the workers, not the suppliers, are what is tried."""
    text = DEMO_CATALOGUE.read_text()
    for concurrency in (8, 5, 4, 3, 2):
        text = text.replace(f"concurrency: {concurrency}\n", "concurrency: 250\n")
    return text


def a_worker_of(cluster: Running) -> psutil.Process:
    """One of the processes that a django-q2 cluster ends its tree of processes in."""
    return next(member for member in cluster.family() if not member.children())


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
        response = requests.post(f"{api}jobs/", json=body, headers=headers, timeout=60)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    with ThreadPoolExecutor(CLIENTS) as clients:
        posted = clients.map(post, range(JOBS))
        for killed_at in (20, 90):
            wait_until(lambda at=killed_at: len(simulator.world.log()["posts"]) >= at, 120, "jobs are sent")
            kill(a_worker_of(traffic).pid)
        ids = list(posted)
    assert len(set(ids)) == JOBS

    began = time.monotonic()
    wait_until(lambda: _pending() == 0, 400, "every job ends")
    assert set(Job.objects.values_list("state", flat=True)) == {"succeeded"}, time.monotonic() - began
    references = set(Attempt.objects.values_list("client_request_key", flat=True))
    accepted = simulator.world.log()["accepted"]
    assert sum(accepted.values()) == JOBS
    assert set(accepted.values()) == {1}
    assert set(accepted) <= references
    assert_invariants()


def _pending() -> int:
    return Job.objects.exclude(state__in=FINAL_JOB_STATES).count()
