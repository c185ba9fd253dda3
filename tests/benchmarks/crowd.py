"""G11: what a hundred thousand attempts in flight cost the memory of those who follow them."""

import os
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import psycopg

from tests.benchmarks.installation import DAEMONS, installation
from tests.benchmarks.measuring import Figures, Plan, Program, Report, Row
from tests.journeys.processes import Running, manage, running

ATTEMPTS: Final = 100_000
FEW: Final = 10
SETTLES_S: Final = 30.0
WATCHED_S: Final = 120.0
WORKERS: Final = {"FRAMEYARD_TRAFFIC_WORKERS": "2", "FRAMEYARD_CONTROL_WORKERS": "2", "NO_PROXY": "*"}


def run(plan: Plan) -> Report:
    """Once, whatever is planned: memory does not depend on what others do."""
    with ExitStack() as stack:
        environment = dict(stack.enter_context(installation())) | WORKERS
        provider = stack.enter_context(Program("tests.benchmarks.polling_provider", "0"))
        address = f"http://127.0.0.1:{provider.told['port']}"
        arguments = (address, str(FEW), str(ATTEMPTS))
        crowd = stack.enter_context(
            Program("tests.benchmarks.crowd_product", *arguments, environment=environment)
        )
        folder = Path(environment["FRAMEYARD_DATA_DIR"]).parent
        daemons = [
            stack.enter_context(running(manage(*command), environment, folder / f"{name}.log"))
            for name, command in DAEMONS.items()
        ]
        sleep(SETTLES_S)
        idle = _memory(daemons)
        made = crowd.window(0).units
        polled = _polled(environment["DATABASE_URL"])
        peak = _peak(daemons)
        polled = _polled(environment["DATABASE_URL"]) - polled
    grown = {pid: peak[pid] - idle.get(pid, 0) for pid in peak}
    row = Row("G11 memory of a process beyond ten", Figures.of([max(grown.values())]), None, 64, 32, "MB")
    whole = Row("the same, of all processes together", Figures.of([sum(grown.values())]), None, unit="MB")
    note = f"{made} attempts in flight; {polled / WATCHED_S:.0f} polls a second were recorded meanwhile"
    return Report("crowd", "nothing but its bars", plan, (row, whole), 0, (note,))


def _memory(daemons: list[Running]) -> dict[int, float]:
    """By process, MB that it holds for itself and its share of what is held together."""
    family = [process for daemon in daemons for process in daemon.family()]
    return {process.pid: process.memory_full_info().pss / 2**20 for process in family if process.is_running()}


def _peak(daemons: list[Running]) -> dict[int, float]:
    peak: dict[int, float] = {}
    ends_at = monotonic() + WATCHED_S
    while monotonic() < ends_at:
        for pid, held in _memory(daemons).items():
            peak[pid] = max(held, peak.get(pid, 0.0))
        sleep(5)
    assert os.getpid() not in peak
    return peak


def _polled(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT sum(polls) FROM dispatch_providerjob").fetchone()
    assert row is not None
    return int(row[0])
