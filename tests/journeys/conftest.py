"""Journeys share the rows of the test's database with real processes, so nothing runs in a transaction."""

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from catalog.audit import Actor
from catalog.simulator.scenario import Timing
from catalog.simulator.server import Simulator
from dispatch.services.import_catalogue import apply_import, plan_import
from tests.engine import catalogue_environment
from tests.journeys.processes import PATIENCE_S, ROOT, Running, database_url, manage, running, wait_until

Start = Callable[..., Running]


@pytest.fixture
def start(transactional_db: None, tmp_path: Path) -> Iterator[Start]:
    """Starts `manage.py` with these arguments on the test's database; its output is in `tmp_path`."""
    environment = {**os.environ, "DATABASE_URL": database_url(connection.settings_dict["NAME"])}
    with ExitStack() as stack:

        def start(*arguments: str, name: str = "", **variables: str) -> Running:
            output = tmp_path / f"{name or '-'.join(arguments)}.log"
            return stack.enter_context(running(manage(*arguments), environment | variables, output))

        yield start
    # The statement of one that was killed goes on: it could write what the next test finds.
    wait_until(lambda: sessions() == 0, PATIENCE_S, "their sessions end")


def sessions() -> int:
    """How many other programs are connected to this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


@pytest.fixture
def simulator(transactional_db: None) -> Iterator[Simulator]:
    with Simulator(timing=Timing(queue_s=0.2, run_s=1)) as running_simulator:
        yield running_simulator


@pytest.fixture
def api(tmp_path: Path, simulator: Simulator) -> Iterator[str]:
    """The address of a real web server on the test's database."""
    environment = {**os.environ, "DATABASE_URL": database_url(connection.settings_dict["NAME"])}
    with web_server(environment, tmp_path / "web.log") as address:
        yield address


@contextmanager
def web_server(environment: Mapping[str, str], log: Path) -> Iterator[str]:
    """The address of the customer API, served by real processes."""
    with socket.create_server(("127.0.0.1", 0)) as door:  # from now on nobody else gets the port
        bind = ["--bind", f"fd://{door.fileno()}"]
        options = [*bind, "--worker-class", "gthread", "--threads", "8", "--chdir", str(ROOT)]
        command = [sys.executable, "-m", "gunicorn", *options, "config.wsgi"]
        with running(command, environment, log, inherits=[door.fileno()]) as web:
            web.says("Listening at", PATIENCE_S)
            yield f"http://127.0.0.1:{door.getsockname()[1]}/api/v1/"


def load_catalogue(simulator: Simulator, text: str) -> None:
    """Imports a catalogue file whose channels are accounts at `simulator`."""
    plan = plan_import(text, catalogue_environment(simulator), timezone.now())
    apply_import(plan, actor=Actor("test", "command"), now=timezone.now())
