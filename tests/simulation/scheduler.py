"""Several workers in one process, of which exactly one runs: the seeded scheduler hands the baton on.

A worker is a thread with a database connection of its own. It gives the baton back wherever the engine awaits
the network, the database or the clock; it may be left there while others go on, for a moment or for two
minutes, or never come back. Time is a number that only the scheduler moves."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from itertools import count
from typing import Any

from django.db import DatabaseError

from tests.simulation.process_clock import START

BEATS_EVERY_S = 10
_LOOK_FOR_LOCK_S = 0.02
_STUCK_S = 60  # of real time: a defect of the simulation, not of what it simulates


class Killed(BaseException):
    """SIGKILL: not an Exception, so that nothing of the product catches it."""


class Stuck(Exception):
    """No worker comes back: the simulation itself is broken."""


class State(Enum):
    IDLE = "idle"
    RUNNING = "running"
    PARKED = "parked"  # between two statements, or in a system call
    LOCKED = "locked"  # in a statement that waits for another's lock


@dataclass(frozen=True)
class Timer:
    """One alarm: the deadline of a call."""

    number: int
    at: datetime
    function: Callable[[], None]


@dataclass(eq=False)
class Worker:
    """`points` counts its awaits within the task, so that a death can be told by its number."""

    name: str
    state: State = State.IDLE
    doing: str = ""
    wakes_at: datetime | None = None
    killed: bool = False
    in_statement: bool = False
    statements: int = 0
    points: int = 0
    fired: int = 0  # timers that went off within its tasks
    backend: int = 0
    heart: Callable[[], object] | None = None  # beats while a call takes its time
    began: dict[str, Any] = field(default_factory=dict)  # what it held of each attempt when its task began
    skew: timedelta = timedelta()
    timers: list[Timer] = field(default_factory=list)
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    unlocked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    guard: threading.Lock = field(default_factory=threading.Lock)
    task: Callable[[], None] | None = None
    error: BaseException | None = None


class Scheduler:
    """`waits_for_lock` answers for a backend's process id; `finished` runs in the worker's own thread."""

    def __init__(
        self, waits_for_lock: Callable[[int], bool], finished: Callable[[Worker], None], workers: int
    ) -> None:
        self._waits_for_lock = waits_for_lock
        self._finished = finished
        self._back = threading.Semaphore(0)
        self._local = threading.local()
        self._closed = False
        self.now = START
        self.skew = timedelta()
        self.at_point: Callable[[Worker, str, str], None] = lambda *_: None
        self.workers = [Worker(f"w{number}") for number in range(1, workers + 1)]
        self._threads = [
            threading.Thread(target=self._live, args=(worker,), name=worker.name, daemon=True)
            for worker in self.workers
        ]
        for thread in self._threads:
            thread.start()

    def begin(self) -> None:
        """A new life: the same clock again, everybody idle."""
        self.now, self.skew = START, timedelta()
        for worker in self.workers:
            worker.skew = timedelta()
            worker.timers.clear()

    def close(self) -> None:
        self._closed = True
        for worker in self.workers:
            worker.go.release()
        for thread in self._threads:
            thread.join(5)

    @property
    def current(self) -> Worker | None:
        """The worker whose thread this is; None outside."""
        return getattr(self._local, "worker", None)

    def clock(self) -> datetime:
        """The host's clock as the caller reads it; it may have been stepped."""
        worker = self.current
        return self.now + self.skew + (worker.skew if worker else timedelta())

    def point(self, name: str, detail: str = "") -> None:
        """An await. The adversary may do here what it likes; a killed worker gets no further."""
        worker = self.current
        if worker is None:
            return
        if worker.killed:
            raise Killed
        worker.points += 1
        self.now += timedelta(milliseconds=1)
        self.at_point(worker, name, detail)
        self.fire_timers(worker)

    def park(self, seconds: float | None = None) -> None:
        """Gives the baton back; goes on when chosen, not before `seconds` have passed."""
        worker = self.current
        if worker is None:
            return
        worker.wakes_at = None if seconds is None else self.now + timedelta(seconds=seconds)
        worker.state = State.PARKED
        self._back.release()
        worker.go.acquire()
        worker.wakes_at = None

    def wait(self, seconds: float) -> None:
        """A system call that takes so long, or until the first of the worker's timers."""
        worker = self.current
        if worker is None:
            return
        until = min([self.now + timedelta(seconds=seconds), *(timer.at for timer in worker.timers)])
        while self.now < until:
            left_s = (until - self.now).total_seconds()
            self.park(left_s if worker.heart is None else min(left_s, BEATS_EVERY_S))
            self._beat(worker)
        self.fire_timers(worker)

    def _beat(self, worker: Worker) -> None:
        if worker.heart is None:
            return
        try:
            worker.heart()
        except DatabaseError:
            worker.heart = None  # it stops, and the claim ends by itself

    def fire_timers(self, worker: Worker) -> None:
        for timer in [timer for timer in worker.timers if timer.at <= self.now]:
            worker.timers.remove(timer)
            worker.fired += 1
            timer.function()

    def enter_statement(self) -> None:
        if worker := self.current:
            with worker.guard:
                worker.in_statement = True
                worker.statements += 1

    def leave_statement(self) -> None:
        """Where the statement had waited for a lock, others went on meanwhile: wait to be chosen."""
        worker = self.current
        if worker is None:
            return
        with worker.guard:
            worker.in_statement = False
            waited = worker.state is State.LOCKED
        if waited:
            worker.unlocked.release()
            worker.go.acquire()

    def start(self, worker: Worker, doing: str, task: Callable[[], None]) -> None:
        worker.doing, worker.task = doing, task
        worker.points, worker.killed, worker.heart = 0, False, None
        self.resume(worker)

    def resume(self, worker: Worker) -> None:
        """Lets it run until it gives the baton back or waits for a lock."""
        worker.state = State.RUNNING
        worker.go.release()
        for _ in range(int(_STUCK_S / _LOOK_FOR_LOCK_S)):
            statement = worker.statements
            if self._back.acquire(timeout=_LOOK_FOR_LOCK_S):
                self.unlock()
                return
            if worker.statements == statement and self._is_locked(worker):
                return
        raise Stuck(f"{worker.name} does not come back from {worker.doing}")

    def unlock(self) -> None:
        """Those whose lock was given are parked again, in the order of their names."""
        for worker in self.workers:
            if worker.state is not State.LOCKED:
                continue
            for _ in range(int(_STUCK_S / _LOOK_FOR_LOCK_S)):
                if worker.unlocked.acquire(timeout=0.001):
                    worker.state = State.PARKED
                    break
                if self._waits_for_lock(worker.backend):
                    break
            else:
                raise Stuck(f"{worker.name} neither waits for a lock nor goes on")

    @property
    def any_locked(self) -> bool:
        return any(worker.state is State.LOCKED for worker in self.workers)

    def idle(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.state is State.IDLE]

    def ready(self) -> list[Worker]:
        return [
            worker
            for worker in self.workers
            if worker.state is State.PARKED and (worker.wakes_at is None or worker.wakes_at <= self.now)
        ]

    def next_wake(self) -> datetime | None:
        return min((worker.wakes_at for worker in self.workers if worker.wakes_at), default=None)

    def _is_locked(self, worker: Worker) -> bool:
        with worker.guard:
            if not worker.in_statement:
                return False
        if not self._waits_for_lock(worker.backend):
            return False
        with worker.guard:
            if not worker.in_statement:
                return False
            worker.state = State.LOCKED
            return True

    def _live(self, worker: Worker) -> None:
        self._local.worker = worker
        while True:
            worker.go.acquire()
            if self._closed:
                return
            self._run(worker)
            worker.state, worker.task = State.IDLE, None
            self._back.release()

    def _run(self, worker: Worker) -> None:
        worker.error = None
        try:
            if worker.task is not None:
                worker.task()
        except Killed:
            worker.killed = True
        except Exception as error:  # noqa: BLE001 - a task that breaks is a worker's line in the log
            worker.error = error
        finally:
            worker.timers.clear()
            self._finished(worker)


class Watchdog:
    """The process's watchdog on the scheduler's time: it rings in the worker that set the alarm."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._numbers = count()

    def ring_in(self, seconds: float, alarm: Callable[[], None]) -> int:
        number = next(self._numbers)
        if worker := self._scheduler.current:
            worker.timers.append(Timer(number, self._scheduler.now + timedelta(seconds=seconds), alarm))
        return number

    def call_off(self, number: int) -> None:
        if worker := self._scheduler.current:
            worker.timers = [timer for timer in worker.timers if timer.number != number]
