"""The supervisor of a machine: order, replacement, and an end that leaves no process, however it comes."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.journeys.processes import PATIENCE_S, Running, all_gone, busy, kill, running, wait_until

pytestmark = pytest.mark.journey

SUPERVISOR = """
import sys
from pathlib import Path
from config.stopping import StopRequest
from config.supervisor import Program, Supervisor
folder = Path(sys.argv[1])
supervisor = Supervisor({}, folder / "logs", StopRequest(), lambda text: print(text, flush=True))
for name in sys.argv[2:]:
    program = [sys.executable, str(folder / f"{name}.py")]
    supervisor.start(Program(name, program, (folder / f"{name}.ready").exists))
print("all ready", flush=True)
supervisor.watch()
supervisor.stop()
print("stopped", flush=True)
"""
PROGRAM = """
import pathlib, signal, subprocess, sys, time
folder = pathlib.Path(__file__).parent
def note_and_end(number, frame):
    (folder / "asked").open("a").write(signal.Signals(number).name + " ")
    sys.exit(0)
{body}
(folder / pathlib.Path(__file__).with_suffix(".ready").name).touch()
time.sleep(300)
"""
BODIES = {
    "parent": "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])",
    "polite": "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, note_and_end)",
    "stubborn": "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)",
    "broken": "sys.exit('the port is taken')",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in BODIES.items():
        (tmp_path / f"{name}.py").write_text(PROGRAM.format(body=body))
    return tmp_path


def command(folder: Path, *programs: str) -> list[str]:
    return [sys.executable, "-c", SUPERVISOR, str(folder), *programs]


@pytest.fixture
def supervisor(folder: Path) -> Iterator[Running]:
    with running(command(folder, "parent", "polite"), os.environ, folder / "output") as supervisor:
        supervisor.says("all ready", PATIENCE_S)
        yield supervisor


def program(supervisor: Running, name: str) -> psutil.Process:
    """Once it runs: the supervisor says so just before it starts one again."""
    seen: list[psutil.Process] = []

    def found() -> bool:
        for each in supervisor.family():
            with suppress(psutil.NoSuchProcess):  # it ends while it is looked at
                seen.extend([each] if f"{name}.py" in " ".join(each.cmdline()) else [])
        return bool(seen)

    wait_until(found, PATIENCE_S, f"{name} runs")
    return seen[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_stop_it_leaves_nothing(supervisor: Running, folder: Path, number: int) -> None:
    family = supervisor.family()
    assert len(family) == 4, "the supervisor, two programs, and the child of one"
    kill(supervisor.pid, number)
    wait_until(lambda: all_gone(family), busy(3), "every process ends")
    assert "stopped" in supervisor.output()


def test_asked_many_times_it_asks_each_program_once(supervisor: Running, folder: Path) -> None:
    family = supervisor.family()
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        kill(supervisor.pid, number)
    wait_until(lambda: all_gone(family), busy(3), "every process ends")
    assert (folder / "asked").read_text() == "SIGTERM "


def test_a_program_that_ignores_every_request_is_gone_within_ten_seconds(folder: Path) -> None:
    programs = command(folder, "polite", "stubborn")
    with running(programs, os.environ, folder / "output") as supervisor:
        supervisor.says("all ready", PATIENCE_S)
        family = supervisor.family()
        kill(supervisor.pid, signal.SIGINT)
        wait_until(lambda: all_gone(family), busy(10), "every process ends")
    assert (folder / "asked").read_text() == "SIGTERM "


def test_a_program_that_is_killed_is_started_again(supervisor: Running, folder: Path) -> None:
    old = program(supervisor, "polite").pid
    kill(old)
    supervisor.says("polite is started again", PATIENCE_S)
    assert "polite was ended by SIGKILL" in supervisor.output()
    assert program(supervisor, "polite").pid != old


def test_what_a_killed_program_had_started_does_not_outlive_it(supervisor: Running, folder: Path) -> None:
    child = program(supervisor, "parent").children()
    kill(program(supervisor, "parent").pid)
    supervisor.says("parent is started again", PATIENCE_S)
    wait_until(lambda: all_gone(child), PATIENCE_S, "what it had started ends")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_killed_itself_it_has_its_programs_asked_to_stop(folder: Path) -> None:
    programs = command(folder, "polite")
    with running(programs, os.environ, folder / "output") as supervisor:
        supervisor.says("all ready", PATIENCE_S)
        family = supervisor.family()
        kill(supervisor.pid)
        wait_until(lambda: all_gone(family), busy(3), "they end")
    assert (folder / "asked").read_text() == "SIGTERM "


def test_a_program_that_ends_at_once_is_told_with_the_end_of_its_log(folder: Path) -> None:
    programs = command(folder, "polite", "broken")
    with running(programs, os.environ, folder / "output") as supervisor:
        assert supervisor.process.wait(PATIENCE_S) == 1
    assert "broken ended with 1" in supervisor.output()
    assert "the port is taken" in supervisor.output()
