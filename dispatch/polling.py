"""The polls of this process that are under way: threads that ask providers and never touch the database.

They outlive the task that began them, and so do their connections. A supplier that hangs holds its own
channel's few threads for as long as it hangs, and no worker: what it says at last is collected later."""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from django.conf import settings

from catalog.providers.types import PollResult
from dispatch.poll_rows import Claimed

_GATHER_S = 0.05  # for so long others are waited for when one has come in, to be recorded together


@dataclass(frozen=True, slots=True)
class Answered:
    attempt: Claimed
    result: PollResult | Exception  # what broke the asking, which nothing foreseen does


class Polling:
    """At most `threads` polls at once, `per_channel` of them of one channel."""

    def __init__(self, threads: int, per_channel: int) -> None:
        self._threads, self._per_channel = threads, per_channel
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="poll")
        self._under_way: Counter[int] = Counter()  # by channel
        self._answers: SimpleQueue[Answered] = SimpleQueue()

    def room(self, channels: Sequence[int]) -> Mapping[int, int]:
        """How many polls of each channel may begin; what there is goes round, the first named first."""
        free, given = self._threads - self._under_way.total(), Counter[int]()
        open_to = [channel for channel in channels if self._under_way[channel] < self._per_channel]
        while free > 0 and open_to:
            for channel in open_to[:free]:
                given[channel] += 1
            free -= len(open_to)
            open_to = [each for each in open_to if self._under_way[each] + given[each] < self._per_channel]
        return given

    def begin(self, attempt: Claimed, ask: Callable[[], PollResult]) -> None:
        self._under_way[attempt.channel_id] += 1
        self._pool.submit(self._ask, attempt, ask)

    def _ask(self, attempt: Claimed, ask: Callable[[], PollResult]) -> None:
        try:
            self._answers.put(Answered(attempt, ask()))
        except Exception as error:  # noqa: BLE001 - told to whoever records it
            self._answers.put(Answered(attempt, error))

    def answered(self, wait_s: float) -> list[Answered]:
        """What has come in since; waits `wait_s` at most for the first."""
        if not self._under_way.total():
            return []
        try:
            found = [self._answers.get(timeout=wait_s)]
        except Empty:
            return []
        if self._under_way.total() > 1:
            time.sleep(_GATHER_S)
        while not self._answers.empty():
            found.append(self._answers.get())
        self._under_way.subtract(answer.attempt.channel_id for answer in found)
        return found


_of_process: dict[int, Polling] = {}


def polling_of_this_process() -> Polling:
    """Made anew in a process that was forked: threads don't come along."""
    mine = _of_process.get(os.getpid())
    if mine is None:
        _of_process.clear()
        mine = _of_process[os.getpid()] = Polling(settings.POLL_THREADS, settings.POLL_THREADS_PER_CHANNEL)
    return mine


def forget_polls() -> None:
    """What is under way comes to nothing; its claims end by themselves."""
    _of_process.clear()
