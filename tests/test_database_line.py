"""A session of ours that the server ended is found before it is used, and a living one without a question."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

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
