"""One leader among any number of processes, by a lock that belongs to a database session."""

import time
from collections.abc import Callable

from django.db import connection

PULSE_LOCK = 0x6672_616D_6579_6172  # any number that nothing else in this database locks
# A leader that is stopped, not dead, keeps its session: PostgreSQL ends it, and another may lead.
SILENT_FOR_S = 5


def try_to_lead(lock: int = PULSE_LOCK) -> bool:
    """Whether this session leads from now on: until it ends, in whatever way."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_session_timeout', %s, false),"
            " set_config('idle_in_transaction_session_timeout', %s, false), pg_try_advisory_lock(%s)",
            [f"{SILENT_FOR_S}s", f"{SILENT_FOR_S}s", lock],
        )
        return bool(cursor.fetchone()[2])


class Seconds:
    """A beat that does not drift: ticks are counted from the first, and those slept through are left out."""

    def __init__(self, every_s: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.every_s = every_s
        self._clock = clock
        self._next_s = clock()

    def until_next_s(self) -> float:
        """How long to sleep until the next tick."""
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s += self.every_s * (1 + (now_s - self._next_s) // self.every_s)
        return self._next_s - now_s
