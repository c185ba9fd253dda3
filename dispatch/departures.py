"""Submissions on their way, many at once: threads that post, and the task's own, which alone speaks with the
database. It says who may send the first byte, and hands out the ends as they come."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

from django.conf import settings

from catalog.providers.types import SendForbidden, SubmitOutcome
from dispatch.models import Attempt

_GATHER_S = 0.01  # for so long others are waited for when one has come, to be answered together
_LONGEST_WAIT_S = 10.0  # for an answer; a departure takes less

type Allow = Callable[[Sequence[Attempt]], set[int]]  # commits who may send; their ids


@dataclass(frozen=True, slots=True)
class Departure:
    """`post` is given what it has to call when the connection stands and no byte is sent."""

    attempt: Attempt
    post: Callable[[Callable[[], None]], SubmitOutcome]


@dataclass(frozen=True, slots=True)
class Ended:
    attempt: Attempt
    outcome: SubmitOutcome | Exception  # what broke it, which nothing foreseen does


@dataclass(frozen=True, slots=True)
class _Asked:
    attempt: Attempt
    answer: Future[bool] = field(default_factory=Future)


type _Wire = SimpleQueue[_Asked | Ended]


def depart(departures: Sequence[Departure], allow: Allow) -> Iterator[list[Ended]]:
    """Until all have ended. A single one goes in the caller's own thread."""
    pool = pool_of_this_process() if len(departures) > 1 else None
    if pool is None:
        for departure in departures:
            yield [_flown(departure, partial(_ask_here, departure.attempt, allow))]
        return
    wire: _Wire = SimpleQueue()
    for departure in departures:
        pool.submit(_fly, departure, wire)
    under_way = len(departures)
    while under_way:
        told = _gathered(wire, under_way)
        _answer([each for each in told if isinstance(each, _Asked)], allow)
        if ended := [each for each in told if isinstance(each, Ended)]:
            under_way -= len(ended)
            yield ended


def _flown(departure: Departure, ask: Callable[[], None]) -> Ended:
    try:
        return Ended(departure.attempt, departure.post(ask))
    except Exception as error:  # noqa: BLE001 - told to whoever records it
        return Ended(departure.attempt, error)


def _ask_here(attempt: Attempt, allow: Allow) -> None:
    if attempt.pk not in allow([attempt]):
        raise SendForbidden(_FORBIDDEN.format(attempt.public_id))


_FORBIDDEN = "attempt {} is no longer this worker's to send"


def _fly(departure: Departure, wire: _Wire) -> None:
    """In a thread of its own, as all that asks over the wire."""
    wire.put(_flown(departure, partial(_ask_there, departure.attempt, wire)))


def _ask_there(attempt: Attempt, wire: _Wire) -> None:
    """An answer that does not come forbids: its task has ended."""
    asked = _Asked(attempt)
    wire.put(asked)
    try:
        is_allowed = asked.answer.result(_LONGEST_WAIT_S)
    except TimeoutError as error:
        raise SendForbidden(f"nobody allowed attempt {attempt.public_id} to be sent") from error
    if not is_allowed:
        raise SendForbidden(_FORBIDDEN.format(attempt.public_id))


def _gathered(wire: _Wire, under_way: int) -> list[_Asked | Ended]:
    """In the task's own thread: what came over the wire, with what comes in the next moment."""
    found = [wire.get()]
    if under_way > 1:
        time.sleep(_GATHER_S)
    while not wire.empty():
        found.append(wire.get())
    return found


def _answer(asked: Sequence[_Asked], allow: Allow) -> None:
    """What breaks here ends every submission that asked: none of them has sent anything."""
    if not asked:
        return
    try:
        allowed = allow([each.attempt for each in asked])
    except Exception as error:  # noqa: BLE001 - comes back as the end of each
        for each in asked:
            each.answer.set_exception(error)
        return
    for each in asked:
        each.answer.set_result(each.attempt.pk in allowed)


_of_process: dict[int, ThreadPoolExecutor] = {}


def pool_of_this_process() -> ThreadPoolExecutor | None:
    """Made anew in a process that was forked: threads don't come along. None: all go in the task's own."""
    mine = _of_process.get(os.getpid())
    if mine is None:
        _of_process.clear()
        mine = ThreadPoolExecutor(settings.SUBMIT_TOGETHER, thread_name_prefix="submit")
        _of_process[os.getpid()] = mine
    return mine
