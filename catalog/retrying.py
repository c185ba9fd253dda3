"""Transactions that PostgreSQL ended for another's sake, as the victim of a deadlock or of a conflict: begun
anew, a few times, each after a wait by chance, so that the two don't meet again."""

import functools
import logging
import random
import time
from collections.abc import Callable
from typing import Final

from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected, SerializationFailure

logger = logging.getLogger(__name__)
TIMES: Final = 4
_LONGEST_WAIT_S: Final = 0.05  # before the second time; twice as long before each further one


def retried_as_victim[**P, T](unit: Callable[P, T]) -> Callable[P, T]:
    """Decorates what is one whole transaction, asks nobody but the database, and changes nothing in memory
    that it reads when it begins anew. Within another transaction it runs once: it is not the whole."""

    @functools.wraps(unit)
    def retried(*args: P.args, **kwargs: P.kwargs) -> T:
        if connection.in_atomic_block:
            return unit(*args, **kwargs)
        for again in range(TIMES - 1):
            try:
                return unit(*args, **kwargs)
            except OperationalError as error:
                if not isinstance(error.__cause__, DeadlockDetected | SerializationFailure):
                    raise
                logger.warning("%s was a victim and begins anew: %s", unit.__qualname__, error.__cause__)
            time.sleep(random.uniform(0, _LONGEST_WAIT_S * 2**again))  # noqa: S311 - parts those who met
        return unit(*args, **kwargs)

    return retried
