"""Real processes for journeys: started as an operator would, watched from outside, never left behind."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import psutil
from psycopg.conninfo import conninfo_to_dict

ROOT = Path(__file__).resolve().parents[2]
# Only bounds a failure, on a machine however slow: what comes is not waited for any longer.
PATIENCE_S = 120


def busy(promised_s: float) -> float:
    """What is promised within so many seconds may take as long where others are at work too."""
    return 3 * promised_s + 10


def wait_until(condition: Callable[[], object], within_s: float, what: str) -> float:
    """Seconds until the condition held."""
    began_s = time.monotonic()
    while not condition():
        if time.monotonic() - began_s > within_s:
            raise AssertionError(f"not within {within_s} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - began_s


@dataclass(frozen=True)
class Running:
    """A process under test and the file that its output goes to."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def output(self) -> str:
        return self.log.read_text()

    def says(self, text: str, within_s: float) -> float:
        """Seconds until the text stood in its output."""
        return wait_until(lambda: text in self.output(), within_s, f"{self.log.name} says {text!r}")

    def family(self) -> list[psutil.Process]:
        return family_of(self.pid)


@contextmanager
def running(
    command: list[str],
    environment: Mapping[str, str],
    log: Path,
    cwd: Path = ROOT,
    inherits: Sequence[int] = (),
) -> Iterator[Running]:
    """The process, and at the end an end for it and everything below it."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            command, env=dict(environment), stdout=file, stderr=file, cwd=cwd, pass_fds=inherits
        )
    try:
        yield Running(process, log)
    finally:
        for member in family_of(process.pid):
            kill(member.pid)
        process.wait(PATIENCE_S)


@contextmanager
def open_folder() -> Iterator[Path]:
    """Unlike pytest's own, a folder that the server's account may pass through when we are root."""
    folder = Path(tempfile.mkdtemp(prefix="frameyard-journey-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def database_url(name: str) -> str:
    """Another database on the server of this test run."""
    server = conninfo_to_dict(os.environ["DATABASE_URL"])
    place = {part: str(server[part]) for part in ("host", "port", "user", "password") if server.get(part)}
    return f"postgresql:///{name}?{urlencode(place)}"


def manage(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), *arguments]


def family_of(pid: int) -> list[psutil.Process]:
    """The process and all its descendants that live."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def all_gone(family: list[psutil.Process]) -> bool:
    """Whether none of them runs any more; one that nobody waits for counts as gone."""
    return not any(_runs(member) for member in family)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
