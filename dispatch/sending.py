"""Who may still send: the worker between its permission and the end of its call holds a lock that its session
of the database owns, and so ends with the worker. While it is held, no listing proves absence."""

from types import TracebackType
from typing import Final, Self

from django.db import InterfaceError, OperationalError, connection

_SPACE: Final = 7_302  # of advisory locks by attempt
_NUMBERS: Final = 2**31


class Sender:
    """One worker on its way to a provider with one attempt."""

    def __init__(self, attempt_id: int) -> None:
        self._attempt_id = attempt_id
        self._announced = False

    def announce(self) -> None:
        """Before the moment of sending is committed, on the same session: without it nothing is committed."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", _key(self._attempt_id))
        self._announced = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._announced:
            return
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", _key(self._attempt_id))
        except (OperationalError, InterfaceError):
            return  # the session is gone, and its locks with it


def may_still_send(attempt_id: int) -> bool:
    """Whether a worker that was allowed to send `attempt_id` has not come to an end: it may be stopped, and
    go on at any time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT NOT pg_try_advisory_xact_lock(%s, %s)", _key(attempt_id))
        return bool(cursor.fetchone()[0])


def _key(attempt_id: int) -> list[int]:
    return [_SPACE, attempt_id % _NUMBERS]
