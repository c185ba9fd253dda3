"""The polls of this process that are under way: threads that ask providers and never touch the database.

They outlive the task that began them, and so do their connections. A supplier that hangs holds its own
channel's few threads for as long as it hangs, and no worker: what it says at last is collected later.

Threads that all have something to do only take the interpreter from each other: thirty that poll a supplier
which answers at once cost half as much again as two. So a channel has as many as its answers leave idle."""

import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock

from django.conf import settings

from catalog.providers.types import PollResult
from dispatch.poll_rows import Claimed

_LOOK_S = 0.02  # so often it is looked whether more threads are wanted, while others are waited for
_WORK_S = 0.003  # of a processor, for one poll: amply
_AHEAD_S = 0.5  # for so long a channel's threads find something to ask, whatever else is done meanwhile
_MOST_AHEAD = 4  # for each thread that a channel may have
_FEWEST, _RECENT = 2, 8


@dataclass(frozen=True, slots=True)
class Answered:
    attempt: Claimed
    # An exception is what broke the asking, which nothing foreseen does; None says that it was not asked.
    result: PollResult | Exception | None


def threads_wanted(answer_s: float) -> int:
    """So many polls are sent in the time that one waits for its answer."""
    return max(_FEWEST, int(answer_s / _WORK_S))


def polls_ahead(answer_s: float, threads: int) -> int:
    """So many may be under way in a channel of at most `threads`, that answers in `answer_s`: those that it
    is asked while the last answers are recorded. A slow or unknown one has no more than threads."""
    soon = min(threads_wanted(answer_s), threads) * _AHEAD_S / answer_s if answer_s else 0
    return max(threads, min(int(soon), threads * _MOST_AHEAD))


@dataclass(frozen=True, slots=True)
class _Poll:
    attempt: Claimed
    ask: Callable[[], PollResult]
    begins_until_s: float  # monotonic


@dataclass(slots=True)
class _Lane:
    """The polls of one channel that wait for a thread, and its threads."""

    most_threads: int
    waiting: deque[_Poll] = field(default_factory=deque)
    threads: int = 0
    answer_s: float = 0  # of late
    began_at_s: float = 0  # the last one that a thread took up

    def lacks(self) -> int:
        """More threads to begin now. Where all wait, the time that the last one has waited says how long an
        answer takes at least."""
        waited_s = time.monotonic() - self.began_at_s if self.threads else 0
        wanted = min(threads_wanted(max(self.answer_s, waited_s)), self.most_threads)
        return min(wanted - self.threads, len(self.waiting))

    def holds(self) -> int:
        return polls_ahead(self.answer_s, self.most_threads)

    def takes(self, under_way: int) -> int:
        """Threads to be kept for it: of a quick channel those that it has."""
        return self.threads if self.holds() > self.most_threads else min(under_way, self.most_threads)

    def took(self, seconds: float) -> None:
        self.answer_s += (seconds - self.answer_s) / (_RECENT if self.answer_s else 1)


class Polling:
    """At most `threads` polls at once, `per_channel` of them of one channel. Answers that come within
    `gather_s` are recorded together."""

    def __init__(self, threads: int, per_channel: int, gather_s: float = 0) -> None:
        self._threads, self._gather_s = threads, gather_s
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="poll")
        self._under_way: Counter[int] = Counter()  # by channel
        self._answers: SimpleQueue[Answered] = SimpleQueue()
        self._lanes: defaultdict[int, _Lane] = defaultdict(lambda: _Lane(per_channel))
        self._lock = Lock()  # of the lanes

    def room(self, channels: Sequence[int]) -> Mapping[int, int]:
        """How many polls of each channel may begin; what there is goes round, the first named first."""
        free = self._threads - sum(
            lane.takes(self._under_way[channel]) for channel, lane in self._lanes.items()
        )
        left = {each: self._lanes[each].holds() - self._under_way[each] for each in channels}
        given, open_to = Counter[int](), list(channels)
        while free > 0 and (open_to := [each for each in open_to if given[each] < left[each]]):
            for channel in open_to[:free]:
                given[channel] += 1
            free -= len(open_to)
        return given

    def begin(self, attempt: Claimed, ask: Callable[[], PollResult], within_s: float) -> None:
        """Where no thread is free within `within_s`, the provider is not asked: the claim would end first."""
        self._under_way[attempt.channel_id] += 1
        lane = self._lanes[attempt.channel_id]
        with self._lock:
            lane.waiting.append(_Poll(attempt, ask, time.monotonic() + within_s))
        self._widen(lane)

    def answered(self, wait_s: float, more_is_due: bool = False) -> list[Answered]:
        """What has come in since; waits `wait_s` at most for the first, and then for others: where
        `more_is_due`, no longer than the threads have something to ask."""
        under_way = self._under_way.total()
        if not under_way or (first := self._first(time.monotonic() + wait_s)) is None:
            return []
        found = [first]
        if under_way > 1:
            self._gather(under_way // 2 if more_is_due else None)
        while not self._answers.empty():
            found.append(self._answers.get())
        self._under_way.subtract(answer.attempt.channel_id for answer in found)
        return found

    def _first(self, until_s: float) -> Answered | None:
        while True:
            try:
                return self._answers.get(timeout=min(_LOOK_S, max(0, until_s - time.monotonic())))
            except Empty:
                if time.monotonic() >= until_s:
                    return None
            self._widen_all()

    def _gather(self, enough: int | None) -> None:
        """`enough`: with the one that came first."""
        until_s = time.monotonic() + self._gather_s
        while (left_s := until_s - time.monotonic()) > 0:
            if enough is not None and self._answers.qsize() >= enough - 1:
                return
            time.sleep(min(_LOOK_S, left_s))
            self._widen_all()

    def _widen_all(self) -> None:
        for lane in self._lanes.values():
            self._widen(lane)

    def _widen(self, lane: _Lane) -> None:
        with self._lock:
            more = lane.lacks()
            if more > 0:
                lane.threads += more
                lane.began_at_s = time.monotonic()
        for _ in range(more):
            self._pool.submit(self._work, lane)

    def _work(self, lane: _Lane) -> None:
        """In a thread: one after the other, while there is one and no thread too many."""
        while True:
            with self._lock:
                if not lane.waiting:
                    lane.threads -= 1
                    return
                poll = lane.waiting.popleft()
                began_s = time.monotonic()
                if began_s > poll.begins_until_s:
                    self._answers.put(Answered(poll.attempt, None))
                    continue
                lane.began_at_s = began_s
            self._ask(poll)
            with self._lock:
                lane.took(time.monotonic() - began_s)
                if lane.threads > threads_wanted(lane.answer_s):
                    lane.threads -= 1
                    return

    def _ask(self, poll: _Poll) -> None:
        try:
            self._answers.put(Answered(poll.attempt, poll.ask()))
        except Exception as error:  # noqa: BLE001 - told to whoever records it
            self._answers.put(Answered(poll.attempt, error))


_of_process: dict[int, Polling] = {}


def polling_of_this_process() -> Polling:
    """Made anew in a process that was forked: threads don't come along."""
    mine = _of_process.get(os.getpid())
    if mine is None:
        _of_process.clear()
        mine = _of_process[os.getpid()] = Polling(
            settings.POLL_THREADS, settings.POLL_THREADS_PER_CHANNEL, settings.POLL_GATHER_MS / 1_000
        )
    return mine


def forget_polls() -> None:
    """What is under way comes to nothing; its claims end by themselves."""
    _of_process.clear()
