"""Many reservers at the few slots of one channel: the loop that every variant is measured in."""

import json
import sys
import threading
from collections.abc import Callable
from time import monotonic, process_time, sleep
from typing import Final, Protocol

RESERVERS: Final = 64
SLOTS: Final = 10
_REFUSED_S: Final = 0.002  # until a refused one asks again


class Reserver(Protocol):
    """One worker with a connection of its own."""

    def reserve(self) -> int:
        """How many slots it got, in one transaction; 0: none was free. Raises Overbooked."""

    def release(self) -> None: ...

    def close(self) -> None: ...


class Overbooked(Exception):
    """More slots were taken than there are: whatever was measured is void."""


def serve_reservers(make: Callable[[int], Reserver], reservers: int, hold_s: float = 0) -> None:
    """A window for each line that gives its seconds; units are reservations, each held for `hold_s`.

    Raises Overbooked when a reserver saw too many slots taken, while it had the lock."""
    _say({})
    for line in sys.stdin:
        window = _Window(float(line), hold_s)
        threads = [threading.Thread(target=window.work, args=(make, each)) for each in range(reservers)]
        for thread in threads:
            thread.start()
        _say(window.measured(threads))


class _Window:
    def __init__(self, seconds: float, hold_s: float) -> None:
        self._seconds, self._hold_s = seconds, hold_s
        self._begin, self._over = threading.Event(), threading.Event()
        self._ready = threading.Semaphore(0)
        self._units = 0
        self._overbooked: Overbooked | None = None
        self._lock = threading.Lock()

    def work(self, make: Callable[[int], Reserver], number: int) -> None:
        """Connected before the window begins, and closed after it has ended."""
        reserver = make(number)
        self._ready.release()
        self._begin.wait()
        try:
            while not self._over.is_set():
                self._once(reserver)
        except Overbooked as error:
            self._overbooked = error
        finally:
            reserver.close()

    def _once(self, reserver: Reserver) -> None:
        got = reserver.reserve()
        if not got:
            sleep(_REFUSED_S)
            return
        with self._lock:
            self._units += got
        if self._hold_s:
            sleep(self._hold_s)
        reserver.release()

    def measured(self, threads: list[threading.Thread]) -> dict[str, float]:
        for _ in threads:
            self._ready.acquire()
        began, cpu_began = monotonic(), process_time()
        self._begin.set()
        sleep(self._seconds)
        units, cpu_s, wall_s = self._units, process_time() - cpu_began, monotonic() - began
        self._over.set()
        for thread in threads:
            thread.join()
        if self._overbooked is not None:
            raise self._overbooked
        return {"units": units, "cpu_s": cpu_s, "wall_s": wall_s}


def _say(answer: dict[str, float]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
