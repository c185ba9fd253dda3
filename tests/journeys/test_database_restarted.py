"""The database dies under load, with two dispatchers at work: no answered job is lost, none paid twice."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import psycopg
import pytest
import requests

from catalog.simulator.scenario import Timing
from catalog.simulator.server import Simulator
from config import embedded
from tests.engine import catalogue_environment
from tests.journeys.conftest import web_server
from tests.journeys.processes import PATIENCE_S, busy, kill, manage, open_folder, running, wait_until
from tests.journeys.test_two_hundred_jobs import wide_catalogue

pytestmark = [pytest.mark.journey, pytest.mark.patient]
JOBS, CLIENTS, PACE_S = 60, 6, 0.6
BEFORE, DIES_AFTER = 30, 8  # the others are ordered of a gateway whose database is away


@pytest.fixture
def home() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


class Client:
    """Posts as an official client would: until it is answered, each order under its own key."""

    def __init__(self, api: str, secret: str) -> None:
        self._jobs = f"{api}jobs/"
        self._secret = secret
        self.refused = 0  # answers and silences of a gateway without its database
        self.database_died = Event()

    def order(self, number: int) -> str:
        headers = {"Authorization": f"Bearer {self._secret}", "Idempotency-Key": f"order-{number}"}
        body = {
            "model": "seedance-2.0-933",
            "prompt": f"scene {number}",
            "duration_s": 4,
            "resolution": "480p",
        }
        time.sleep(PACE_S)
        if number >= BEFORE:
            assert self.database_died.wait(3 * PATIENCE_S)
        while True:
            try:
                response = requests.post(self._jobs, json=body, headers=headers, timeout=PATIENCE_S)
            except requests.ConnectionError:
                response = None
            if response is not None and response.status_code == 201:
                return str(response.json()["id"])
            assert response is None or response.status_code == 503, response.text
            self.refused += 1
            time.sleep(0.3)


def test_every_answered_job_is_delivered_once_though_the_database_died(home: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        simulator = stack.enter_context(Simulator(timing=Timing(queue_s=0.2, run_s=1)))
        server = embedded.start(home)
        environment = {
            **os.environ,
            **catalogue_environment(simulator),
            "DATABASE_URL": server.url,
            "FRAMEYARD_DATA_DIR": str(tmp_path / "data"),
        }
        secret = _install(environment, tmp_path)
        api = stack.enter_context(web_server(environment, tmp_path / "web.log"))
        for number, arguments in enumerate(
            (["pulse"], ["pulse"], ["worker", "control"], ["worker", "control"], ["worker", "traffic"])
        ):
            log = tmp_path / f"{'-'.join(arguments)}-{number}.log"
            stack.enter_context(running(manage(*arguments), environment, log))
        _await_a_scan(server.url, PATIENCE_S)
        client = Client(api, secret)
        with ThreadPoolExecutor(CLIENTS) as clients:
            orders = clients.map(client.order, range(JOBS))
            wait_until(lambda: len(_posts(simulator)) >= DIES_AFTER, 3 * PATIENCE_S, "jobs are sent")
            kill(server.process.pid, signal.SIGQUIT)  # what PostgreSQL calls an immediate shutdown
            server.process.wait(PATIENCE_S)
            client.database_died.set()
            server.stop()
            wait_until(lambda: client.refused, PATIENCE_S, "somebody notices that the database is away")
            server = embedded.start(home)
            stack.callback(server.stop)
            _await_a_scan(server.url, busy(10))
            ids = list(orders)
        wait_until(lambda: _states(server.url) == {"succeeded"}, 5 * PATIENCE_S, "every job is delivered")
        assert _count(server.url) == len(set(ids)) == JOBS
        accepted = simulator.world.log()["accepted"]
        assert (sum(accepted.values()), set(accepted.values())) == (JOBS, {1})
        subprocess.run(manage("check_invariants"), env=environment, check=True, capture_output=True)


def _install(environment: Mapping[str, str], folder: Path) -> str:
    """Prepares the database as an operator would; the customer's key."""
    catalogue = folder / "catalogue.yaml"
    catalogue.write_text(wide_catalogue())
    said = ""
    for arguments in (
        ["prepare"],
        ["catalogue", "import", str(catalogue), "--yes"],
        ["customer", "acme", "--group", "studio", "--deposit", "100000"],
        ["api_key", "issue", "acme"],
    ):
        done = subprocess.run(
            manage(*arguments), env=environment, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        said = done.stdout
    return said.rsplit(": ", 1)[1].strip()


def _posts(simulator: Simulator) -> list[object]:
    return simulator.world.log()["posts"]


def _await_a_scan(url: str, within_s: float) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        scans = (
            "SELECT count(*) FROM dispatch_bell WHERE name = 'scan' AND answered_at > now() - interval '1 s'"
        )
        wait_until(lambda: connection.execute(scans).fetchone() == (1,), within_s, "the dispatcher scans")


def _states(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {state for (state,) in connection.execute("SELECT DISTINCT state FROM dispatch_job")}


def _count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM dispatch_job").fetchone()
        assert row is not None
        return int(row[0])
