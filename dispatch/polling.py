"""The polls of this process that are under way: threads that ask providers and never touch the database.

They outlive the task that began them, and so do their connections. A supplier that hangs holds its own
channel's few threads for as long as it hangs, and no worker: what it says at last is collected later."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from django.conf import settings

from catalog.providers.types import PollResult
from dispatch.models import Attempt


@dataclass(frozen=True, slots=True)
class Answered:
    attempt: Attempt  # as it was claimed
    poll: Future[PollResult]

    def result(self) -> PollResult:
        """Raises what broke the asking, which nothing foreseen does."""
        return self.poll.result()

    def result_or_none(self) -> PollResult | None:
        return None if self.poll.exception() else self.poll.result()


class Polling:
    """At most `threads` polls at once, `per_channel` of them of one channel."""

    def __init__(self, threads: int, per_channel: int) -> None:
        self._threads, self._per_channel = threads, per_channel
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="poll")
        self._under_way: dict[Future[PollResult], Attempt] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def room(self, channels: Sequence[int]) -> Mapping[int, int]:
        """How many polls of each channel may begin; what there is goes round, the first named first."""
        busy = Counter(attempt.channel_id for attempt in self._under_way.values())
        free, given = self._threads - len(self), Counter[int]()
        open_to = [channel for channel in channels if busy[channel] < self._per_channel]
        while free > 0 and open_to:
            for channel in open_to[:free]:
                given[channel] += 1
            free -= len(open_to)
            open_to = [each for each in open_to if busy[each] + given[each] < self._per_channel]
        return given

    def begin(self, attempt: Attempt, ask: Callable[[], PollResult]) -> None:
        self._under_way[self._pool.submit(ask)] = attempt

    def answered(self, wait_s: float) -> list[Answered]:
        """What has come in since; waits `wait_s` at most for the first."""
        if not self._under_way:
            return []
        done = wait(self._under_way, wait_s, FIRST_COMPLETED).done
        return [Answered(self._under_way.pop(poll), poll) for poll in done]


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
