"""Keeps a claim alive while its worker works, so that the claim of a dead one ends soon."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import DatabaseError, connection

from dispatch.models import Attempt

logger = logging.getLogger(__name__)
EVERY_S = 10
CLAIM = timedelta(seconds=30)


@contextmanager
def kept_claim(attempt: Attempt, clock: Callable[[], datetime]) -> Iterator[None]:
    """Moves `next_look_at` on every ten seconds, as long as the attempt stays at the version claimed."""
    done = threading.Event()
    beating = threading.Thread(
        target=_beat, args=(attempt.pk, attempt.state_version, clock, done), daemon=True
    )
    beating.start()
    try:
        yield
    finally:
        done.set()
        beating.join()


def _beat(attempt_id: int, version: int, clock: Callable[[], datetime], done: threading.Event) -> None:
    try:
        while not done.wait(EVERY_S):
            Attempt.objects.filter(pk=attempt_id, state_version=version).update(next_look_at=clock() + CLAIM)
    except DatabaseError:
        # The claim ends by itself and another worker takes over; this one is fenced by version.
        logger.warning("A claim could not be kept alive", exc_info=True)
    finally:
        connection.close()
