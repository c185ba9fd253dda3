"""Until another thread's statement waits for a lock of ours: then it stands where a test wants it."""

import time
from concurrent.futures import Future
from typing import Any

from django.db import connection

_WAITS_FOR_US = """
SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"""


def until_somebody_waits(asked: Future[Any]) -> None:
    """Or until `asked` is done without a wait, which the test will tell."""
    gives_up_s = time.monotonic() + 60
    with connection.cursor() as cursor:
        while not asked.done():
            cursor.execute(_WAITS_FOR_US)
            if cursor.fetchone()[0]:
                return
            assert time.monotonic() < gives_up_s, "nobody waits for a lock"
