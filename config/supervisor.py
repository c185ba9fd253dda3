"""Runs the programs of an installation together: in order, watched, and none left behind.

For a demo and a single machine; elsewhere systemd or containers run the same commands."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config.children import die_with_parent, sweep_group
from config.stopping import StopRequest

STOP_WITHIN_S = 6  # with the database's own end this stays below the 10 s that Ctrl-C may take
LOG_BYTES_KEPT = 10_000_000
_SLOWEST_RESTART_S = 10.0
_STEADY_AFTER_S = 10.0


class ProgramFailed(Exception):
    """A program ended, or did not get ready; the message holds the end of its log."""


class Stopped(Exception):
    """We were asked to stop while a program was starting."""


@dataclass(frozen=True)
class Program:
    """One program: `is_ready` tells when the next may start; `variables` are its own beside everybody's."""

    name: str
    command: Sequence[str]
    is_ready: Callable[[], bool] = lambda: True
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Running:
    program: Program
    process: subprocess.Popen[bytes]
    started_s: float
    restart_wait_s: float = 0.5


class Supervisor:
    """Keeps programs running until `stop`; each in a session of its own, writing to a log of its own.

    Should we be killed, the kernel sends each of them SIGTERM."""

    def __init__(
        self, environment: Mapping[str, str], logs: Path, request: StopRequest, say: Callable[[str], None]
    ) -> None:
        self.environment = dict(environment)
        self.logs = logs
        self.request = request
        self.say = say
        self._running: list[_Running] = []
        logs.mkdir(parents=True, exist_ok=True)

    def run(self, program: Program, *, to_terminal: bool = False) -> None:
        """Runs a program to its end, while the others stay watched. Raises ProgramFailed, Stopped."""
        process = self._spawn(program, to_terminal)
        try:
            while process.poll() is None:
                if self.request.wait(0.2):
                    raise Stopped
                self.mend()
        finally:
            sweep_group(process)
        if process.returncode:
            raise ProgramFailed(self._account_of(program.name, process.returncode))

    def start(self, program: Program, within_s: float = 60) -> None:
        """Starts a program and waits until it is ready. Raises ProgramFailed, Stopped."""
        running = _Running(program, self._spawn(program), time.monotonic())
        self._running.append(running)
        while not program.is_ready():
            if self.request.wait(0.05):
                raise Stopped
            if running.process.poll() is not None:
                raise ProgramFailed(self._account_of(program.name, running.process.returncode))
            if time.monotonic() > running.started_s + within_s:
                raise ProgramFailed(
                    f"{program.name} is not ready after {within_s:.0f} s.{self._tail(program.name)}"
                )

    def watch(self) -> None:
        """Starts again what ends, until somebody asks us to stop."""
        while not self.request.wait(1):
            self.mend()

    def mend(self) -> None:
        """Starts again what ended, a program that keeps ending more and more slowly."""
        for running in self._running:
            if running.process.poll() is not None:
                self._restart(running)

    def stop(self) -> None:
        """One SIGTERM each, the last started first; what is left after `STOP_WITHIN_S` is killed."""
        for running in reversed(self._running):
            if running.process.poll() is None:
                running.process.terminate()
        deadline = time.monotonic() + STOP_WITHIN_S
        while (
            any(running.process.poll() is None for running in self._running) and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        for running in reversed(self._running):
            sweep_group(running.process)
        self._running.clear()

    def _restart(self, running: _Running) -> None:
        name, lived_s = running.program.name, time.monotonic() - running.started_s
        if lived_s < running.restart_wait_s:
            return
        sweep_group(running.process)
        steady = lived_s > _STEADY_AFTER_S
        running.restart_wait_s = 0.5 if steady else min(running.restart_wait_s * 2, _SLOWEST_RESTART_S)
        self.say(f"{self._account_of(name, running.process.returncode)}\n{name} is started again.")
        running.process, running.started_s = self._spawn(running.program), time.monotonic()

    def _spawn(self, program: Program, to_terminal: bool = False) -> subprocess.Popen[bytes]:
        path = self.logs / f"{program.name}.log"
        if path.exists() and path.stat().st_size > LOG_BYTES_KEPT:
            path.replace(path.with_suffix(".log.1"))
        with path.open("ab") as log:
            return subprocess.Popen(
                program.command,
                env={**self.environment, **program.variables},
                stdin=subprocess.DEVNULL,
                stdout=None if to_terminal else log,
                stderr=log,
                start_new_session=True,  # the terminal's Ctrl-C comes to us alone, and we stop in order
                preexec_fn=die_with_parent(signal.SIGTERM),
            )

    def _account_of(self, name: str, code: int) -> str:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"{name} {how}.{self._tail(name)}"

    def _tail(self, name: str) -> str:
        path = self.logs / f"{name}.log"
        with path.open("rb") as log:
            log.seek(-min(2000, path.stat().st_size), os.SEEK_END)
            lines = log.read().decode(errors="replace").splitlines()[-5:]
        return "".join(f"\n    {line}" for line in lines) + f"\n  Its log: {path}"
