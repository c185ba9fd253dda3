"""Calls back: posts a task's document at each change of its status, as its script says."""

import heapq
import itertools
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests

from catalog.simulator.faces.face import Face
from catalog.simulator.world import Task, World

_TRIES = 3
_TIMEOUT_S = 5


class Caller:
    """One thread that sleeps until something changes, and makes one call after the other, in order."""

    def __init__(self, world: World, faces: dict[str, Face], origin: str) -> None:
        self._world, self._faces, self._origin = world, faces, origin
        self._stopped = threading.Event()
        self._due: list[
            tuple[float, int, Task, float, str]
        ] = []  # call at, tie-break, task, changed at, word
        self._ties = itertools.count()
        self._said: dict[tuple[str, str, float], bytes] = {}

    def stop(self) -> None:
        with self._world.changed:
            self._stopped.set()
            self._world.changed.notify_all()

    def run(self) -> None:
        while not self._stopped.is_set():
            with self._world.changed:
                self._plan()
                ready = self._ready()
                if not ready and not self._stopped.is_set():
                    self._world.changed.wait(self._sleep_s())
            for task, at, word in ready:
                self._call(task, at, word)

    def _plan(self) -> None:
        while self._world.to_call:
            self._plan_task(self._world.to_call.popleft())

    def _plan_task(self, task: Task) -> None:
        changes = task.life.changes()
        if task.do.callback == "none":
            return
        if task.do.callback == "reordered":
            last = max(at for at, _ in changes)
            changes = [(at, word) for at, word in reversed(changes)]
            self._push(task, [(last, at, word) for at, word in changes])
            return
        late_s = task.do.callback_late_s if task.do.callback == "late" else 0
        times = 2 if task.do.callback == "twice" else task.do.callback_times
        self._push(task, [(at + late_s, at, word) for at, word in changes for _ in range(times)])

    def _push(self, task: Task, calls: list[tuple[float, float, str]]) -> None:
        for call_at, at, word in calls:
            heapq.heappush(self._due, (call_at, next(self._ties), task, at, word))

    def _ready(self) -> list[tuple[Task, float, str]]:
        ready, now = [], self._world.now()
        while self._due and self._due[0][0] <= now:
            _, _, task, at, word = heapq.heappop(self._due)
            if task.life.cancelled_at is None:
                ready.append((task, at, word))
        return ready

    def _sleep_s(self) -> float | None:
        return max(0.0, self._due[0][0] - self._world.now()) if self._due else None

    def _call(self, task: Task, at: float, word: str) -> None:
        body = self._said.get((task.id, word, at))
        if body is None:  # who calls again repeats himself: the same bytes
            body = self._faces[task.face].callback(task, word, at, self._origin)
            self._said[task.id, word, at] = body
        address = _misled(task.request["callback_url"], task.do.callback)
        for _ in range(_TRIES):
            if _is_taken(address, body):
                break
        self._world.count_call(task)


def _is_taken(address: Any, body: bytes) -> bool:
    with suppress(requests.RequestException), requests.Session() as session:
        session.trust_env = False
        headers = {"Content-Type": "application/json"}
        answer = session.post(address, body, headers=headers, timeout=_TIMEOUT_S, allow_redirects=False)
        return answer.status_code < 500
    return False


def _misled(address: str, callback: str) -> str:
    """The address, or as somebody would guess it."""
    parts = urlsplit(address)
    if callback == "forged":
        return urlunsplit(parts._replace(query=parts.query[:-8] + "00000000"))
    if callback == "wrong_place":
        return urlunsplit(parts._replace(path=parts.path[:-9] + "00000000/"))
    return address
