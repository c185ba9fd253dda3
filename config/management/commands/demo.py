"""`manage.py demo`: a whole gateway on one machine, until Ctrl-C.

This process only starts, watches and stops the others, and never opens the database itself: its settings were
read before there was one."""

import os
import socket
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.binaries import PostgresUnavailable
from config.demo_content import ACCOUNT_KEYS, OPERATOR, SIMULATOR_URL
from config.installation import (
    DEMO_API_KEY,
    DEMO_PASSWORD,
    Installation,
    InstallationError,
    open_installation,
)
from config.stopping import StopRequest
from config.supervisor import Program, ProgramFailed, Stopped, Supervisor

HOST = "127.0.0.1"
CLUSTERS = ("control", "traffic")
# Below the supervisor's own patience, so that workers end in order before they are ended.
GRACE_S = 4
# The programs of a demo that was killed a moment ago still hold their ports.
_PORT_FREE_WITHIN_S = 5


class Command(BaseCommand):
    help = "Run a whole gateway on this machine: database, web server, workers, pulse, simulated providers."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="an empty installation without simulator")
        parser.add_argument("--port", type=int, default=8000, help="of the web server (default %(default)s)")
        parser.add_argument("--simulator-port", type=int, default=8091, help="(default %(default)s)")
        parser.add_argument("--data-dir", type=Path, default=settings.DATA_DIR, help="(default %(default)s)")

    def handle(self, *_: Any, **options: Any) -> None:
        demo = _Demo(options, StopRequest(), self._say)
        try:
            demo.run()
        except Stopped:
            pass
        except (InstallationError, PostgresUnavailable, ProgramFailed) as error:
            raise CommandError(str(error)) from error
        self._say("Stopped.")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


class _Demo:
    def __init__(self, options: dict[str, Any], request: StopRequest, say: Callable[[str], None]) -> None:
        self.is_empty: bool = options["no_demo"]
        self.port: int = options["port"]
        self.simulator_port: int = options["simulator_port"]
        self.home: Path = options["data_dir"].resolve()
        self.request = request
        self.say = say

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def run(self) -> None:
        """Raises Stopped, InstallationError, PostgresUnavailable, ProgramFailed."""
        installation = open_installation(self.home, os.environ)
        self._await_free("--port", self.port)
        if not self.is_empty:
            self._await_free("--simulator-port", self.simulator_port)
        with installation.database() as database_url:
            environment = self._environment(installation, database_url)
            supervisor = Supervisor(environment, self.home / "logs", self.request, self.say)
            try:
                self._start(supervisor, installation)
                supervisor.watch()
            finally:
                self.say("\nStopping…")
                supervisor.stop()

    def _start(self, supervisor: Supervisor, installation: Installation) -> None:
        self.say(f"Data in {self.home}; a log of each program in {supervisor.logs}")
        supervisor.run(self._preparation(installation))
        installation.remember_database()
        for program in self._programs():
            supervisor.start(program)
        self._introduce(installation)
        if not self.is_empty:
            self._show_samples(supervisor, installation)
        self.say("\nServing. Ctrl-C stops everything.")

    def _preparation(self, installation: Installation) -> Program:
        # Only this program and the sample jobs are told the secrets that are printed for people.
        secrets = {name: installation.keys[name] for name in (DEMO_API_KEY, DEMO_PASSWORD)}
        simulated = {SIMULATOR_URL: f"http://{HOST}:{self.simulator_port}", **ACCOUNT_KEYS}
        command = _manage("prepare", *(() if self.is_empty else ("--demo",)))
        return Program("prepare", command, variables=secrets | simulated)

    def _programs(self) -> list[Program]:
        simulator = Program(
            "simulator",
            _manage("simulator", "--host", HOST, "--port", str(self.simulator_port)),
            lambda: _answers(self.simulator_port),
        )
        workers = [
            Program(
                f"worker-{cluster}",
                _manage("worker", cluster, "--grace", str(GRACE_S)),
                variables={"Q_CLUSTER_NAME": cluster},
            )
            for cluster in CLUSTERS
        ]
        web = Program("web", _web_command(self.port), lambda: _answers(self.port))
        return [*([] if self.is_empty else [simulator]), *workers, Program("pulse", _manage("pulse")), web]

    def _environment(self, installation: Installation, database_url: str) -> dict[str, str]:
        """Plain HTTP on this machine only; the simulator is on loopback, where no real provider may be."""
        environment = {
            "FRAMEYARD_ENVIRONMENT": "demo",
            "FRAMEYARD_BEHIND_TLS": "0",
            "FRAMEYARD_ALLOW_PRIVATE_ADDRESSES": "0" if self.is_empty else "1",
        }
        return environment | installation.environment(database_url)

    def _introduce(self, installation: Installation) -> None:
        self.say(f"\nConsole  {self.url}/console/")
        self.say(
            f"         login {OPERATOR}, password {installation.keys[DEMO_PASSWORD]} (until you change it)"
        )
        self.say(f"API      {self.url}/api/v1/")
        if not self.is_empty:
            self.say(f"         key {installation.keys[DEMO_API_KEY]}")

    def _show_samples(self, supervisor: Supervisor, installation: Installation) -> None:
        self.say("\nSample jobs, one per modality, through the API:")
        key = {DEMO_API_KEY: installation.keys[DEMO_API_KEY]}
        try:
            supervisor.run(
                Program("sample-jobs", _manage("sample_jobs", self.url), variables=key), to_terminal=True
            )
        except ProgramFailed as error:
            self.say(str(error))  # the gateway serves all the same, and its console shows why

    def _await_free(self, option: str, port: int) -> None:
        deadline_s = time.monotonic() + _PORT_FREE_WITHIN_S
        while not _is_free(port):
            if time.monotonic() > deadline_s:
                raise CommandError(f"Port {port} is in use by another program; choose another with {option}.")
            if self.request.wait(0.2):
                raise Stopped


def _manage(*arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]


def _web_command(port: int) -> list[str]:
    options = ["--bind", f"{HOST}:{port}", "--worker-class", "gthread", "--workers", "2", "--threads", "8"]
    # Loaded once and forked; a demo needs no door for gunicorn's own control program.
    options += ["--preload", "--no-control-socket", "--graceful-timeout", str(GRACE_S)]
    return [sys.executable, "-m", "gunicorn", "--chdir", str(settings.BASE_DIR), *options, "config.wsgi"]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0
