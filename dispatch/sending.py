"""Who may still send: the worker between its permission and the end of its call holds a lock that its session
of the database owns, and so ends with the worker. While it is held, no listing proves absence."""

from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from django.db import Error, connection

from catalog.statements import prepared

_SPACE: Final = 7_302  # of advisory locks by attempt
_NUMBERS: Final = 2**31


class Sender:
    """One worker on its way to providers with some attempts."""

    def __init__(self) -> None:
        self._announced: Counter[int] = Counter()  # locks are counted, should two attempts share one

    def announce(self, attempt_ids: Iterable[int]) -> None:
        """Before the moment of sending is committed, on the same session: without it nothing is committed."""
        keys = [_key(attempt_id) for attempt_id in attempt_ids]
        with prepared() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, key) FROM unnest(%s::int[]) AS key", [_SPACE, keys])
        self._announced.update(keys)

    def has_sent(self, attempt_ids: Iterable[int]) -> None:
        """Their calls have come to an end. What can't be given back now is when all are."""
        ended = Counter(_key(attempt_id) for attempt_id in attempt_ids) & self._announced
        if self._unlock(ended):
            self._announced -= ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._unlock(self._announced):
            connection.close()  # the locks go with the session, if it is not gone already

    def _unlock(self, keys: Counter[int]) -> bool:
        if not keys:
            return True
        try:
            with prepared() as cursor:
                cursor.execute(
                    "SELECT pg_advisory_unlock(%s, key) FROM unnest(%s::int[]) AS key",
                    [_SPACE, list(keys.elements())],
                )
        except Error:
            return False
        return True


def may_still_send(attempt_id: int) -> bool:
    """Whether a worker that was allowed to send `attempt_id` has not come to an end: it may be stopped, and
    go on at any time."""
    with prepared() as cursor:
        cursor.execute("SELECT NOT pg_try_advisory_xact_lock(%s, %s)", [_SPACE, _key(attempt_id)])
        return bool(cursor.fetchone()[0])


def _key(attempt_id: int) -> int:
    return attempt_id % _NUMBERS
