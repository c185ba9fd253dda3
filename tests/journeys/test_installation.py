"""The keys of a data folder: made once with its database, private, and never made anew."""

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from billing.keys import is_well_formed
from config.installation import (
    DEMO_API_KEY,
    SECRETS,
    Installation,
    InstallationError,
    _draft_keys,
    is_empty,
    open_installation,
    read_keys,
)
from tests.journeys.processes import database_url

pytestmark = [pytest.mark.journey, pytest.mark.patient]
EMBEDDED: dict[str, str] = {}


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database on the server of this test run."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE DATABASE installation")
        yield database_url("installation")
        connection.execute("DROP DATABASE installation WITH (FORCE)")


def migrate(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS django_migrations (id int)")


def made_with(home: Path, url: str) -> Installation:
    installation = open_installation(home, {"DATABASE_URL": url})
    migrate(url)
    installation.remember_database()
    return installation


def test_a_new_folder_gets_its_own_keys_which_only_its_owner_can_read(tmp_path: Path) -> None:
    first = open_installation(tmp_path / "a", EMBEDDED)
    second = open_installation(tmp_path / "b", EMBEDDED)
    assert all(first.keys[name] != second.keys[name] for name in SECRETS)
    assert is_well_formed(first.keys[DEMO_API_KEY])
    assert stat.S_IMODE((tmp_path / "a" / "keys.env").stat().st_mode) == 0o600


def test_opened_again_it_has_the_same_keys(tmp_path: Path) -> None:
    first = open_installation(tmp_path, EMBEDDED)
    assert open_installation(tmp_path, EMBEDDED).keys == first.keys


def test_first_starts_at_once_in_one_folder_have_the_keys_of_its_file_and_leave_nothing_else(
    tmp_path: Path,
) -> None:
    together = Barrier(4)

    def start(home: Path) -> Installation:
        together.wait()
        return open_installation(home, EMBEDDED)

    with ThreadPoolExecutor(together.parties) as starts:
        for home in (tmp_path / str(number) for number in range(20)):
            opened = list(starts.map(start, [home] * together.parties))
            kept = read_keys(home / "keys.env", EMBEDDED)
            assert [installation.keys for installation in opened] == [kept] * len(opened)
            assert [path.name for path in home.iterdir()] == ["keys.env"]


def test_a_first_start_that_was_killed_leaves_a_folder_that_the_next_one_opens(tmp_path: Path) -> None:
    _draft_keys(tmp_path, {"FRAMEYARD_SECRET_KEY": "half"})
    assert open_installation(tmp_path, EMBEDDED).keys["FRAMEYARD_SECRET_KEY"] != "half"


def test_keys_that_the_environment_gives_are_neither_doubled_nor_stored(tmp_path: Path) -> None:
    given = dict.fromkeys(SECRETS, "given")
    open_installation(tmp_path, given)
    assert not any(name in (tmp_path / "keys.env").read_text() for name in SECRETS)
    with pytest.raises(InstallationError, match="lacks FRAMEYARD_SECRET_KEY"):
        open_installation(tmp_path, EMBEDDED)


def test_a_folder_with_somebody_elses_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InstallationError, match=r"not Frameyard's: it holds thesis\.tex"):
        open_installation(tmp_path, EMBEDDED)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_embedded_database_without_its_keys_gets_no_new_ones(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    with pytest.raises(InstallationError, match=r"keys\.env with its keys is missing"):
        open_installation(tmp_path, EMBEDDED)
    assert not (tmp_path / "keys.env").exists()


def test_a_database_of_rows_without_its_keys_gets_no_new_ones(tmp_path: Path, url: str) -> None:
    migrate(url)
    with pytest.raises(InstallationError, match=r"keys\.env with its keys is missing"):
        open_installation(tmp_path / "new", {"DATABASE_URL": url})
    assert not (tmp_path / "new").exists()


def test_an_empty_database_where_one_with_rows_was_is_refused(tmp_path: Path, url: str) -> None:
    made_with(tmp_path, url)
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE django_migrations")
    with pytest.raises(InstallationError, match="empty, and it was not before"):
        open_installation(tmp_path, {"DATABASE_URL": url}).database().__enter__()
    assert is_empty(url)


def test_keys_whose_embedded_database_is_gone_are_refused(tmp_path: Path) -> None:
    open_installation(tmp_path, EMBEDDED).remember_database()
    with pytest.raises(InstallationError, match="the database that they belong to is gone"):
        open_installation(tmp_path, EMBEDDED)


def test_a_folder_does_not_serve_a_second_database(tmp_path: Path, url: str) -> None:
    made_with(tmp_path, url)
    with pytest.raises(InstallationError, match="belongs to the database"):
        open_installation(tmp_path, EMBEDDED)


def test_an_incomplete_keys_file_is_refused_by_the_name_of_what_it_lacks(tmp_path: Path) -> None:
    open_installation(tmp_path, EMBEDDED)
    (tmp_path / "keys.env").write_text("FRAMEYARD_SECRET_KEY=something\n")
    with pytest.raises(InstallationError, match="lacks FRAMEYARD_MASTER_KEYS"):
        open_installation(tmp_path, EMBEDDED)


def test_a_server_that_does_not_answer_is_named_as_such(tmp_path: Path) -> None:
    nowhere = {"DATABASE_URL": f"postgresql:///x?host={tmp_path}"}
    with pytest.raises(InstallationError, match="does not answer"):
        open_installation(tmp_path / "new", nowhere)
