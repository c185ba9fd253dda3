"""One dispatcher scans at a time, wherever it runs; one more waits behind it, and any other may leave.

The locks belong to the database session: they go with a killed process's connection, and the one that waits
takes over. Who finds somebody waiting may leave without a scan: whoever waits has not read anything yet, and
will see all that is committed by now, since it reads its clock only when its turn has come. Which of them
scans is no matter of time, so clocks that differ can't make two scans."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, connection

from catalog.statements import prepared

SCAN_LOCK = 7_301  # held while scanning
NEXT_LOCK = 7_302  # held while waiting for the other
GATHER_S = 0.3  # after a scan that left somebody waiting: what comes meanwhile goes into the next one


@contextmanager
def scan_turn() -> Iterator[bool]:
    """Whether to scan: true with the lock held, false where somebody else will see the same rows."""
    if not _take("pg_try_advisory_lock", SCAN_LOCK):
        if not _take("pg_try_advisory_lock", NEXT_LOCK):
            yield False
            return
        try:
            _take("pg_advisory_lock", SCAN_LOCK)
            time.sleep(GATHER_S)
        finally:
            _give_back(NEXT_LOCK)
    try:
        yield True
    finally:
        _give_back(SCAN_LOCK)


def _take(function: str, lock: int) -> bool:
    with prepared() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [lock])
        return bool(cursor.fetchone()[0])


def _give_back(lock: int) -> None:
    """A lock that can't be given back goes with its session: nobody scans while it is held."""
    try:
        _take("pg_advisory_unlock", lock)
    except Error:
        connection.close()
        raise
