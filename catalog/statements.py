"""Statements that PostgreSQL parses and plans once for a session, not at each execution.

For those that run with every request or move, and find their rows by keys: their plan is the same whatever
the parameters. What searches or limits is better planned for its parameters, with `connection.cursor()`.
Arrays go in binary, `%b`: as a text, each element is escaped by itself, which takes six times as long."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper


@contextmanager
def prepared() -> Iterator[CursorWrapper]:
    """A cursor of the thread's connection. Its parameters go to the server by themselves: an int by its size,
    so that one in a sum or a difference wants a cast to bigint."""
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with connection.wrap_database_errors:
        cursor = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
    with connection._prepare_cursor(cursor) as wrapped:  # type: ignore[attr-defined]
        yield wrapped
