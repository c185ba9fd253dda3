"""Keeps a claim or a lease alive while its worker works, so that the claim of a dead one ends soon."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import Error, connection
from django.db.models import QuerySet

from dispatch.capacity import LEASE_TTL
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease, LeaseState

logger = logging.getLogger(__name__)
EVERY_S = 10
CLAIM = timedelta(seconds=30)


@contextmanager
def kept_claim(attempt: Attempt, clock: Callable[[], datetime]) -> Iterator[None]:
    """Moves `next_look_at` on every ten seconds, as long as the attempt stays at the version claimed."""
    claimed = Attempt.objects.filter(pk=attempt.pk, state_version=attempt.state_version)
    with _beating(lambda: claimed.update(next_look_at=clock() + CLAIM)):
        yield


@contextmanager
def kept_leases(attempts: Iterable[Attempt], clock: Callable[[], datetime]) -> Iterator[None]:
    """Renews the leases of attempts as long as they are being sent. One that ran out meanwhile stays so: who
    was stopped for that long must not act on it."""
    ids = [attempt.pk for attempt in attempts]
    sent = Attempt.objects.filter(pk__in=ids, state=AttemptState.SUBMITTING)
    live = CapacityLease.objects.filter(attempt__in=sent, state=LeaseState.LIVE)
    with _beating(lambda: _renew(live, clock())):
        yield


def _renew(leases: QuerySet[CapacityLease], now: datetime) -> None:
    leases.filter(expires_at__gt=now).update(renewed_at=now, expires_at=now + LEASE_TTL)


@contextmanager
def _beating(beat: Callable[[], object]) -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=_beat_until, args=(done, beat), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _beat_until(done: threading.Event, beat: Callable[[], object]) -> None:
    try:
        while not done.wait(EVERY_S):
            try:
                beat()
            except Error:
                # It may be back at the next beat. If not, the claim ends by itself and another worker takes
                # over; this one is fenced by version.
                logger.warning("A claim could not be kept alive", exc_info=True)
                connection.close()
    finally:
        connection.close()
