"""The thread's session of the database, where it may have broken while something else was waited for."""

from django.db import connection


def drop_broken_session() -> None:
    """The next statement begins another. One that works is kept, however old it is: it may hold locks that
    say that its worker lives."""
    if connection.connection is not None and not connection.is_usable():
        connection.close()
