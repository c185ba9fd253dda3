"""What an installation costs while nobody asks anything of it: statements a second, and processor time.

The daemons of one host (web, both clusters, the leading pulse) on a PostgreSQL of their own, which logs every
statement. A standby pulse, which a second host has, asks once a second more."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil
import psycopg

from dispatch.pulse import BELLS
from tests.benchmarks.installation import installation
from tests.benchmarks.measuring import (
    ROUNDS_PER_WANTED,
    TICKS,
    Figures,
    NoQuietWindow,
    Plan,
    Report,
    Row,
    foreign_ticks,
)
from tests.journeys.processes import family_of, manage, running, wait_until

WINDOW_S: Final = 60.0  # signs of life come every ten seconds, housekeeping every minute: one in each
SETTLE_S: Final = 10.0
_WEB = [sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:0", "--worker-class", "gthread"]
_WEB += ["--workers", "2", "--threads", "8", "--preload", "--no-control-socket", "config.wsgi"]
DAEMONS: Final = {
    "control": manage("worker", "control"),
    "traffic": manage("worker", "traffic"),
    "pulse": manage("pulse"),
    "web": _WEB,
}
_LOGGED: Final = (b"LOG:  statement: ", b"LOG:  execute ")


def run(plan: Plan) -> Report:
    plan = replace(plan, window_s=max(plan.window_s, WINDOW_S))
    with ExitStack() as stack:
        environment = stack.enter_context(installation())
        folder = Path(environment["FRAMEYARD_DATA_DIR"]).parent
        daemons = stack.enter_context(_daemons(environment, folder))
        with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as connection:
            wait_until(lambda: _answered(connection) == len(BELLS), 90, "every bell is answered")
            connection.execute("ALTER SYSTEM SET log_statement = 'all'")
            connection.execute("SELECT pg_reload_conf()")
            server = psutil.Process(connection.info.backend_pid).ppid()
        time.sleep(SETTLE_S)  # everything that a start brings with it
        windows, discarded = _windows(folder / "postgres.log", daemons, server, plan)
        notes = tuple(_complaints(folder))
    statements, ours, database = (Figures.of(figures) for figures in zip(*windows, strict=True))
    rows = (
        Row("statements", statements, None, 20, 6, "a second"),
        Row("CPU of all daemons", ours, None, 5, 2, "% of a core"),
        Row("CPU of PostgreSQL, which logs them", database, unit="% of a core"),
    )
    return Report("idle", "nothing but its bars", plan, rows, discarded, notes)


@contextmanager
def _daemons(environment: Mapping[str, str], folder: Path) -> Iterator[list[int]]:
    """The process ids of what was started; each has a family of its own below it."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(running(command, environment, folder / f"{name}.log")).pid
            for name, command in DAEMONS.items()
        ]


def _answered(connection: psycopg.Connection) -> int:
    answered = "SELECT count(*) FROM dispatch_bell WHERE answered_at >= rung_at"
    return int(connection.execute(answered).fetchone()[0])


def _windows(
    log: Path, daemons: Sequence[int], server: int, plan: Plan
) -> tuple[list[tuple[float, float, float]], int]:
    """Of each quiet window statements a second, our share of a core and the database's; how many were not."""
    quiet: list[tuple[float, float, float]] = []
    for number in range(1, plan.windows * ROUNDS_PER_WANTED + 1):
        ours, database = _cpu_s(daemons), _cpu_s([server])
        known = [os.getpid(), server, *daemons]  # what those below them do is next to nothing
        before, began_s, read_to = foreign_ticks(known), time.monotonic(), log.stat().st_size
        time.sleep(plan.window_s)
        lasted_s, foreign_s = time.monotonic() - began_s, (foreign_ticks(known) - before) / TICKS
        if foreign_s / lasted_s / (os.cpu_count() or 1) <= plan.foreign_share:
            shares = [
                _spent_s(roots, since) / lasted_s * 100
                for roots, since in ((daemons, ours), ([server], database))
            ]
            quiet.append((_statements_since(log, read_to) / lasted_s, *shares))
        if len(quiet) == plan.windows:
            return quiet, number - len(quiet)
    raise NoQuietWindow(f"{number - len(quiet)} windows were too noisy")


def _cpu_s(roots: Sequence[int]) -> dict[int, float]:
    """Processor time so far of each process of these families."""
    members = [member for root in roots for member in family_of(root)]
    return {member.pid: sum(member.cpu_times()[:2]) for member in members}


def _spent_s(roots: Sequence[int], since: Mapping[int, float]) -> float:
    """By those that live: the database's helpers come and go."""
    return sum(spent_s - since.get(pid, 0) for pid, spent_s in _cpu_s(roots).items())


def _complaints(folder: Path) -> Iterator[str]:
    """What the daemons logged as errors: a cluster that was replaced, say, is not idle."""
    for name in DAEMONS:
        for line in (folder / f"{name}.log").read_text().splitlines():
            if '"level": "ERROR"' in line:
                yield f"{name}: {line[:200]}"


def _statements_since(log: Path, offset: int) -> int:
    with log.open("rb") as lines:
        lines.seek(offset)
        return sum(any(mark in line for mark in _LOGGED) for line in lines)
