"""Runs lives in processes of their own, on a PostgreSQL server of their own, and sums up what they found."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import psycopg

from config import embedded

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_LIVES = 2_000  # within which a planted bug must be found
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - outputs are written and read at once


class Broken(Exception):
    """A simulating process ended by itself; the message holds what it said last."""


@dataclass
class Summary:
    """What many lives came to."""

    seeds: int = 0
    seconds: float = 0
    posts: int = 0
    keys: int = 0
    most_posts: int = 0  # for one client key
    faults: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    violations: list[dict[str, Any]] = field(default_factory=list)

    def add(self, life: dict[str, Any]) -> None:
        self.seeds += 1
        self.seconds += life["seconds"]
        self.posts += sum(life["posts"].values())
        self.keys += len(life["posts"])
        self.most_posts = max([self.most_posts, *life["posts"].values()])
        self.faults.update(life["faults"])
        self.states.update(life["states"])
        if life["findings"]:
            self.violations.append(life)


class Process:
    """One simulating process with its database; an order in, a life out."""

    def __init__(self, server: str, number: int, folder: Path) -> None:
        self._log = (folder / f"process-{number}.log").open("w+")
        name = f"simulation_{os.getpid()}_{number}"
        with psycopg.connect(_with_database(server, "postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.simulation.process"],
            cwd=ROOT,
            env=_environment(folder / f"data-{number}", _with_database(server, name)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def live(self, **order: Any) -> dict[str, Any]:
        """`seed`, and where wanted `mutation` and `left_out`."""
        self._await_ready()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _await_ready(self) -> None:
        if not hasattr(self, "_ready"):
            self._ready = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise Broken(self._log.read()[-4000:])
        document: dict[str, Any] = json.loads(line)
        return document

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()


@contextmanager
def processes(count: int, server: str | None = None) -> Iterator[list[Process]]:
    """Simulating processes on `server` (a DATABASE_URL whose server may be used), or on one of their own."""
    place = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="frameyard-simulation-", dir=place))
    folder.chmod(0o711)
    own = None if server else embedded.start(folder, durable=False)
    started: list[Process] = []
    try:
        for number in range(count):
            started.append(Process(server or own.url, number, folder))  # type: ignore[union-attr]
        yield started
    finally:
        for process in started:
            process.stop()
        if own:
            own.stop()
        shutil.rmtree(folder, ignore_errors=True)


def lives(running: Sequence[Process], orders: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lives as they end; each process takes the next order when it is free."""
    waiting, ended = iter(list(orders)), Queue[Any]()

    def work(process: Process) -> None:
        try:
            while (order := next(waiting, None)) is not None:
                ended.put(process.live(**order) | {"order": order})
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            ended.put(error)
        ended.put(None)

    threads = [Thread(target=work, args=(process,), daemon=True) for process in running]
    for thread in threads:
        thread.start()
    left = len(threads)
    while left:
        match ended.get():
            case None:
                left -= 1
            case Exception() as error:
                raise error
            case life:
                yield life


def shortest(process: Process, life: dict[str, Any], mutation: str = "") -> dict[str, Any]:
    """The same life with as few of its faults as still lead to the same violation."""
    invariant, left_out = life["findings"][0][0], set[int]()
    for number in range(1, life["injected"] + 1):
        tried = process.live(seed=life["seed"], mutation=mutation, left_out=sorted({*left_out, number}))
        if any(found[0] == invariant for found in tried["findings"]):
            left_out.add(number)
            life = tried | {"left_out": sorted(left_out)}
    return life


def lives_to_find(
    running: Sequence[Process], mutation: str, first: int, most: int
) -> tuple[int, dict[str, Any] | None]:
    """How many lives it took until the planted bug was found, and that life; None: it never was."""
    count = 0
    while count < most:
        step = min(len(running) * 4, most - count)
        orders = [{"seed": first + count + number, "mutation": mutation} for number in range(step)]
        found = [life for life in lives(running, orders) if life["findings"]]
        if found:
            life = min(found, key=lambda life: life["seed"])
            return life["seed"] - first + 1, life
        count += step
    return count, None


def _with_database(url: str, name: str) -> str:
    head, mark, options = url.partition("?")
    return f"{head.rpartition('/')[0]}/{name}{mark}{options}"


def _environment(folder: Path, database: str) -> dict[str, str]:
    (folder / "static").mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FRAMEYARD_")}
    return kept | {
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "FRAMEYARD_DATA_DIR": str(folder),
        "FRAMEYARD_SECRET_KEY": "only-for-simulations-" * 3,
        "FRAMEYARD_MASTER_KEYS": f"simulation:{base64.b64encode(bytes(range(32))).decode()}",
        "FRAMEYARD_ALLOW_PRIVATE_ADDRESSES": "1",
        "FRAMEYARD_BEHIND_TLS": "0",
        "FRAMEYARD_PUBLIC_URL": "http://localhost",  # so that providers are told where to call
        "FRAMEYARD_OUTPUT_MAX_BYTES": "4000000",
        "FRAMEYARD_OUTPUT_FETCH_DEADLINE_S": "300",
    }
