"""Two hundred jobs by eight clients, while workers are killed: each delivered, none paid twice."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import requests
from django.db import connection
from django.utils import timezone

from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.audit import Actor
from catalog.simulator.scenario import Timing
from catalog.simulator.server import Simulator
from dispatch.lifecycle import FINAL_JOB_STATES
from dispatch.models import Attempt, Job
from dispatch.services.import_catalogue import apply_import, plan_import
from tests.engine import DEMO_CATALOGUE, catalogue_environment
from tests.invariants import assert_invariants
from tests.journeys.conftest import Start
from tests.journeys.processes import ROOT, Running, database_url, kill, running, wait_until

pytestmark = pytest.mark.journey
JOBS, CLIENTS = 200, 8


@pytest.fixture
def simulator(transactional_db: None) -> Iterator[Simulator]:
    with Simulator(timing=Timing(queue_s=0.2, run_s=1)) as running_simulator:
        yield running_simulator


@pytest.fixture
def api(tmp_path: Path, simulator: Simulator) -> Iterator[str]:
    """The address of a real web server on the test's database."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    options = ["--bind", address, "--worker-class", "gthread", "--threads", "8", "--chdir", str(ROOT)]
    environment = {**os.environ, "DATABASE_URL": database_url(connection.settings_dict["NAME"])}
    command = [sys.executable, "-m", "gunicorn", *options, "config.wsgi"]
    with running(command, environment, tmp_path / "web.log") as web:
        web.says("Listening at", 60)
        yield f"http://{address}/api/v1/"


def load_wide_catalogue(simulator: Simulator) -> None:
    """The demo catalogue, with enough slots that the workers, not the suppliers, are what is tried."""
    text = DEMO_CATALOGUE.read_text()
    for concurrency in (8, 5, 4, 3, 2):
        text = text.replace(f"concurrency: {concurrency}\n", "concurrency: 250\n")
    plan = plan_import(text, catalogue_environment(simulator), timezone.now())
    apply_import(plan, actor=Actor("test", "command"), now=timezone.now())


def a_worker_of(cluster: Running) -> psutil.Process:
    """One of the processes that a django-q2 cluster ends its tree of processes in."""
    return next(member for member in cluster.family() if not member.children())


def test_every_job_is_delivered_and_none_is_paid_twice_though_workers_are_killed(
    start: Start, api: str, simulator: Simulator
) -> None:
    load_wide_catalogue(simulator)
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
