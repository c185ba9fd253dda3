"""One thread of a process that ends what lasts too long: a timer of its own for each call would cost more
than the call's own share of the processor."""

import os
import threading
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from time import monotonic

_FORGOTTEN = 1_000  # alarms that were called off may stay in the heap before it is cleared of them


class Watchdog:
    """Alarms ring once, at their time or soon after, in the watchdog's thread; so they must be short."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._alarms: dict[int, Callable[[], None]] = {}
        self._due: list[tuple[float, int]] = []
        self._numbers = count()
        self._thread: threading.Thread | None = None

    def ring_in(self, seconds: float, alarm: Callable[[], None]) -> int:
        """The number to call it off with."""
        at_s = monotonic() + seconds
        with self._changed:
            number = next(self._numbers)
            self._alarms[number] = alarm
            heappush(self._due, (at_s, number))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
                self._thread.start()
            elif self._due[0][1] == number:
                self._changed.notify()
        return number

    def call_off(self, number: int) -> None:
        with self._changed:
            self._alarms.pop(number, None)
            if len(self._due) > 2 * len(self._alarms) + _FORGOTTEN:
                self._due = [due for due in self._due if due[1] in self._alarms]
                heapify(self._due)

    def _run(self) -> None:
        while True:
            for alarm in self._ripe():
                alarm()

    def _ripe(self) -> list[Callable[[], None]]:
        ripe: list[Callable[[], None]] = []
        with self._changed:
            while self._due and (self._due[0][0] <= monotonic() or self._due[0][1] not in self._alarms):
                alarm = self._alarms.pop(heappop(self._due)[1], None)
                ripe += [alarm] if alarm else []
            if not ripe:
                self._changed.wait(self._due[0][0] - monotonic() if self._due else None)
        return ripe


_watchdogs = [Watchdog()]


def watchdog() -> Watchdog:
    """Of this process."""
    return _watchdogs[0]


def _begin_anew() -> None:
    """In a process that was forked: threads don't come along, and locks may have been held."""
    _watchdogs[0] = Watchdog()


os.register_at_fork(after_in_child=_begin_anew)
