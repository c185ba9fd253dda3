"""Real processes for journeys: started as an operator would, watched from outside, never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import psutil
from psycopg.conninfo import conninfo_to_dict

ROOT = Path(__file__).resolve().parents[2]


def wait_until(condition: Callable[[], object], within_s: float, what: str) -> float:
    """Seconds until the condition held."""
    began_s = time.monotonic()
    while not condition():
        if time.monotonic() - began_s > within_s:
            raise AssertionError(f"not within {within_s} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - began_s


@contextmanager
def running(
    command: list[str], environment: Mapping[str, str], output: Path, **arguments: object
) -> Iterator[subprocess.Popen[bytes]]:
    """The process and everything below it, killed at the end if it still runs."""
    with output.open("ab") as file:
        process = subprocess.Popen(command, env=dict(environment), stdout=file, stderr=file, **arguments)  # type: ignore[call-overload]
    family: list[psutil.Process] = []
    try:
        yield process
        family = family_of(process.pid)
    finally:
        for member in family or family_of(process.pid):
            kill(member.pid)
        process.wait(10)


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
