"""A session of ours that the server ended is found before it is used, and a living one without a question."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import close_old_connections, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from psycopg.sql import SQL, Identifier

pytestmark = pytest.mark.django_db(transaction=True)


def begin_request() -> None:
    """As each request and task does."""
    connection.health_check_done = False
    connection.close_if_health_check_failed()


def test_a_living_session_is_used_without_a_question() -> None:
    connection.ensure_connection()
    session = connection.connection
    with CaptureQueriesContext(connection) as asked:
        begin_request()
    assert (len(asked), connection.connection) == (0, session)


@pytest.mark.parametrize("how", ["pg_terminate_backend(pid)", "pg_cancel_backend(pid)"])
def test_a_session_that_the_server_ended_is_made_anew_and_another_is_kept(how: str) -> None:
    connection.ensure_connection()
    ours = connection.connection
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            ending = f"SELECT {how} FROM pg_stat_activity WHERE pid = %s"  # noqa: S608 - one of two
            cursor.execute(ending, [ours.info.backend_pid])
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
            while how.startswith("pg_terminate"):
                cursor.execute(gone, [ours.info.backend_pid])
                if cursor.fetchone() == (0,):
                    break
    finally:
        other.close()
    begin_request()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
    assert (connection.connection is ours) == how.startswith("pg_cancel")


def test_a_session_that_was_told_a_word_is_asked_and_kept() -> None:
    with connection.cursor() as cursor:
        cursor.execute("LISTEN told")
        session = connection.connection
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("NOTIFY told")
    finally:
        other.close()
    begin_request()
    assert connection.connection is session
    assert [word.channel for word in session.notifies(timeout=5, stop_after=1)] == ["told"]


@contextmanager
def away() -> Iterator[None]:
    """Our database ends its sessions and lets nobody in."""
    name = connection.settings_dict["NAME"]
    doors = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(doors.format(Identifier(name), False))
        try:
            ending = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s"
            server.execute(ending, [name])
            yield
        finally:
            server.execute(doors.format(Identifier(name), True))


def asks_whether_ready(client: Client) -> int:
    close_old_connections()  # as each request does; the test's client leaves it out
    return client.get("/ready").status_code


def test_the_process_is_ready_as_long_as_its_database_answers_and_again_once_it_does(client: Client) -> None:
    assert asks_whether_ready(client) == 200
    with away():
        assert asks_whether_ready(client) == 503
        assert asks_whether_ready(client) == 503
    assert asks_whether_ready(client) == 200
