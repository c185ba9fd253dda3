"""G1, G2, G11, G13: whole lives of jobs through workers, pulse and web server, against the rows alone.

Both sides work on one database, in turns; the daemons of the product run on meanwhile and find nothing to do.
The provider is the simulator, over loopback, in a process whose work is counted for nobody."""

import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final

import psycopg
import requests

from tests.benchmarks.installation import installation
from tests.benchmarks.measuring import (
    TICKS,
    Figures,
    NoQuietWindow,
    Plan,
    Program,
    Report,
    Row,
    Window,
    family_ticks,
    foreign_ticks,
)
from tests.journeys.processes import ROOT, Running, manage, running

LIVES: Final = 12_000  # a window: three times as many as can be under way, so that their steps are mixed
WHOLE: Final = 60
KILLED: Final = 60
SLOTS: Final = 4_500  # of each channel and supply, each held for some 20 s: fewer would hold the workers up
WINDOWS: Final = 2  # at most, whatever is planned: one of ours takes about a minute
RUN_S: Final = 14.0  # of a task: a first poll that comes late finds it at work, the next one its end
REFUSED: Final = ("doubao-seedance-2-0-260128", "dreamina-seedance-2-0-260128")  # at their end
WORKERS: Final = {"FRAMEYARD_TRAFFIC_WORKERS": "2", "FRAMEYARD_CONTROL_WORKERS": "2"}


@dataclass(slots=True)
class Sized:
    """What one window cost besides its time."""

    window: Window
    cpu_ms: float  # a life, of all our processes and PostgreSQL
    wal: float  # bytes a life
    size: float  # of the database, bytes a life


@dataclass(slots=True)
class Yard:
    """The installation with everything that runs in it."""

    environment: Mapping[str, str]
    simulator: Running
    traffic: Running
    api: str
    sides: dict[str, list[Sized]] = field(default_factory=dict)
    discarded: int = 0

    def measured(self, side: str, program: Program, lives: int) -> Sized:
        wal, size = self._written()
        ticks = self._own_ticks()
        window = program.window(0)
        cpu_ms = (self._own_ticks() - ticks) / TICKS * 1_000
        wal_after, size_after = self._written()
        return Sized(window, cpu_ms / lives, (wal_after - wal) / lives, (size_after - size) / lives)

    def figures(self, side: str, of: str) -> Figures:
        return Figures.of([getattr(sized, of) for sized in self.sides[side]])

    def rates(self, side: str) -> Figures:
        return Figures.of([sized.window.units_per_s for sized in self.sides[side]])

    def _own_ticks(self) -> int:
        return family_ticks(os.getpid()) - family_ticks(self.simulator.pid)

    def _written(self) -> tuple[int, int]:
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            row = connection.execute(
                "SELECT pg_current_wal_lsn() - '0/0', pg_database_size(current_database())"
            ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    def accepted(self) -> Mapping[str, int]:
        """By our reference, as the provider counted."""
        log: dict[str, Any] = requests.get(f"{self.simulator_url}/_sim/log", timeout=60).json()
        return log["accepted"]  # type: ignore[no-any-return]

    @property
    def simulator_url(self) -> str:
        return self.environment["FRAMEYARD_SIMULATOR_URL"]


def run(plan: Plan) -> Report:
    windows = min(plan.windows, WINDOWS)
    with ExitStack() as stack:
        yard = _yard(stack)
        before = _memory(yard.traffic)
        _measure(yard, plan, windows)
        polls = _polls(yard)
        grown = _memory(yard.traffic) - before
        again_s, lost, twice = _killed(yard)
        _assert_sound(yard)
    notes = (
        f"{LIVES} lives a window; their ends counted from a fifth to three fifths of them",
        f"{polls:.2f} polls a life, of those that ended at their provider",
        "every life had its rows, and the invariants held afterwards",
        f"workers of the cluster grew by {grown / 2**20:.0f} MB in the run",
    )
    rows = (*_rows(yard), *_after_a_kill(again_s, lost, twice))
    plan = Plan(windows, 0, plan.foreign_share)
    return Report("life", "its rows by psycopg, 50 to a commit", plan, rows, yard.discarded, notes)


def _yard(stack: ExitStack) -> Yard:
    environment = dict(stack.enter_context(installation())) | WORKERS | {"no_proxy": "*"}
    folder = Path(environment["FRAMEYARD_DATA_DIR"]).parent
    port = _free_port()
    environment |= {
        "FRAMEYARD_SIMULATOR_URL": f"http://127.0.0.1:{port}",
        "FRAMEYARD_DEMO_ARK_BEIJING_KEY": "beijing-account-key",
        "FRAMEYARD_DEMO_ARK_SINGAPORE_KEY": "singapore-account-key",
    }

    def start(name: str, command: list[str]) -> Running:
        return stack.enter_context(running(command, environment, folder / f"{name}.log"))

    speed = ("--queue-s", "0", "--run-s", str(RUN_S))
    simulator = start("simulator", manage("simulator", "--port", str(port), *speed))
    simulator.says("ark:", 60)
    _load_catalogue(environment, folder)
    _refuse_at_the_end(environment["FRAMEYARD_SIMULATOR_URL"])
    traffic = start("traffic", manage("worker", "traffic"))
    start("control", manage("worker", "control"))
    start("pulse", manage("pulse"))
    web = f"127.0.0.1:{_free_port()}"
    serving = ["--bind", web, "--workers", "2", "--worker-class", "gthread", "--threads", "4"]
    gunicorn = [manage()[0], "-m", "gunicorn", *serving, "--chdir", str(ROOT), "config.wsgi"]
    start("web", gunicorn).says("Listening at", 60)
    return Yard(environment, simulator, traffic, f"http://{web}/api/v1/")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _load_catalogue(environment: Mapping[str, str], folder: Path) -> None:
    """The demo's, with slots enough."""
    text = (ROOT / "catalog" / "demo" / "catalogue.yaml").read_text()
    for concurrency in (8, 5, 4, 3, 2):
        text = text.replace(f"concurrency: {concurrency}\n", f"concurrency: {SLOTS}\n")
    file = folder / "catalogue.yaml"
    file.write_text(text)
    command = manage("catalogue", "import", str(file), "--yes")
    with running(command, environment, folder / "catalogue.log") as importing:
        assert importing.process.wait(60) == 0, importing.output()


def _refuse_at_the_end(simulator: str) -> None:
    rules = [
        {"when": {"call": "submit", "model": model}, "do": {"fail": "InvalidParameter"}} for model in REFUSED
    ]
    requests.post(f"{simulator}/_sim/script", json={"rules": rules}, timeout=10).raise_for_status()


def _measure(yard: Yard, plan: Plan, windows: int) -> None:
    """Rounds of a window of each side; one in which others used too much is thrown away."""
    with ExitStack() as stack:

        def program(module: str, *arguments: str) -> Program:
            module = f"tests.benchmarks.{module}"
            return stack.enter_context(Program(module, *arguments, environment=yard.environment))

        failing = program("life_product", "failing", str(LIVES), "")
        template = failing.told["template"]
        programs = {
            "lives": (failing, LIVES),
            "posted": (program("life_product", "posted", str(LIVES), yard.api), LIVES),
            "whole": (program("life_product", "whole", str(WHOLE), ""), WHOLE),
            "floor": (program("life_floor", template, str(LIVES)), LIVES),
        }
        yard.sides = {side: [] for side in programs}
        while len(yard.sides["floor"]) < windows:
            if yard.discarded >= 2 * windows:
                raise NoQuietWindow(f"{yard.discarded} rounds were too noisy")
            foreign, began = _foreign(), monotonic()
            of_round = {side: yard.measured(side, *given) for side, given in programs.items()}
            if (_foreign() - foreign) / (monotonic() - began) / (os.cpu_count() or 1) > plan.foreign_share:
                yard.discarded += 1
                continue
            for side, sized in of_round.items():
                yard.sides[side].append(sized)


def _foreign() -> float:
    """Seconds of processors that others have used; the simulator is ours here."""
    return (foreign_ticks(()) - family_ticks(os.getpid())) / TICKS


def _killed(yard: Yard) -> tuple[float, int, int]:
    """Seconds until the next owner, lives that did not end, and submissions accepted twice."""
    arguments = ("killed", str(KILLED), str(yard.traffic.pid))
    with Program("tests.benchmarks.life_product", *arguments, environment=yard.environment) as program:
        window = program.window(0)
    return window.wall_s, KILLED - window.units, sum(count > 1 for count in yard.accepted().values())


def _memory(cluster: Running) -> int:
    """Bytes that its processes hold for themselves, and their share of what they hold together."""
    return sum(process.memory_full_info().pss for process in cluster.family())


def _polls(yard: Yard) -> float:
    """The floor leads two a life; ours has fewer where the first one comes when all is over."""
    with psycopg.connect(yard.environment["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT avg(polls) FROM dispatch_providerjob").fetchone()
    assert row is not None
    return float(row[0])


def _rows(yard: Yard) -> tuple[Row, ...]:
    rate, cpu = yard.rates("floor"), yard.figures("floor", "cpu_ms")

    def rows(side: str, name: str, bar: float | None, goal: float | None) -> tuple[Row, ...]:
        return (
            Row(name, yard.rates(side), rate, bar, goal, "lives/s", more_is_better=True),
            Row(f"{name}: CPU", yard.figures(side, "cpu_ms"), cpu),
        )

    def size(of: str, name: str) -> Row:
        return Row(name, yard.figures("lives", of), yard.figures("floor", of), 2, 2, "bytes")

    return (
        *rows("lives", "G1 from the queue to the books", 0.25, 0.5),
        *rows("posted", "G2 from the API to the books", 0.15, 0.3),
        *rows("whole", "whole, with its output kept", None, None),
        size("wal", "G11 WAL of a life"),
        size("size", "G11 database of a life"),
    )


def _after_a_kill(again_s: float, lost: int, twice: int) -> tuple[Row, ...]:
    def row(name: str, value: float, bar: float, goal: float, unit: str) -> Row:
        return Row(f"G13 SIGKILL of all workers: {name}", Figures.of([value]), None, bar, goal, unit)

    return (
        row("next owner", again_s, 10, 2, "s"),
        row("lost", lost, 0, 0, "lives"),
        row("submitted twice", twice, 0, 0, "lives"),
    )


def _assert_sound(yard: Yard) -> None:
    """Every life has its rows, once, and every invariant holds."""
    folder = Path(yard.environment["FRAMEYARD_DATA_DIR"]).parent
    with running(manage("check_invariants"), yard.environment, folder / "invariants.log") as check:
        assert check.process.wait(300) == 0, check.output()
    with psycopg.connect(yard.environment["DATABASE_URL"]) as connection:
        found = connection.execute(
            """SELECT count(*) FILTER (WHERE state NOT IN ('failed', 'succeeded')), count(*),
                      (SELECT count(*) FROM dispatch_attempt), (SELECT count(*) FROM dispatch_capacitylease),
                      (SELECT count(*) FROM billing_creditentry WHERE kind = 'release') FROM dispatch_job"""
        ).fetchone()
    assert found is not None
    unended, jobs, attempts, leases, released = found
    assert unended == 0
    assert jobs <= attempts == leases
    assert released == jobs
