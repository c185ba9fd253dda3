"""Migrates beside running traffic: never in the way of it for longer than a moment.

A migration that waits for a lock on a busy table makes everybody behind it wait too. So it gives up soon,
is rolled back whole, and is tried again."""

import random
import time
from collections.abc import Callable

from django.core.management import call_command
from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

LOCK_TIMEOUT = "1500ms"
TRIES = 40
PAUSE_S = 1.5


class TablesStayBusy(Exception):
    """No moment was found in which a table was free; nothing is half done."""


def migrate(verbosity: int) -> None:
    """Every migration that is missing. Raises TablesStayBusy."""
    patiently(lambda: call_command("migrate", interactive=False, verbosity=verbosity))


def patiently(change: Callable[[], object], pause: Callable[[float], None] = time.sleep) -> int:
    """Runs `change` with short waits for locks until it gets through; how many tries it took."""
    for number in range(1, TRIES + 1):
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT])
        try:
            change()
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
        else:
            return number
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")
        pause(PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load
    raise TablesStayBusy(
        f"A table was never free for a migration in {TRIES} tries; nothing is half done. Look for a long "
        "transaction in pg_stat_activity and try again."
    )
