"""Calls end in time by one thread for all of them."""

import os
import threading
import time
import warnings

from catalog.providers.watchdog import Watchdog, watchdog


def test_alarms_ring_once_in_the_order_of_their_times_and_not_when_called_off() -> None:
    dog, rung, all_rung = Watchdog(), list[str](), threading.Event()
    dog.ring_in(0.9, all_rung.set)
    dog.ring_in(0.8, lambda: rung.append("second"))
    late = dog.ring_in(0.7, lambda: rung.append("never"))
    dog.ring_in(0.1, lambda: rung.append("first"))
    dog.call_off(late)
    assert all_rung.wait(20)
    assert rung == ["first", "second"]


def test_alarms_that_were_called_off_are_forgotten() -> None:
    dog = Watchdog()
    for _ in range(5_000):
        dog.call_off(dog.ring_in(1_000, lambda: None))
    assert len(dog._due) <= 1_001


def test_a_process_that_was_forked_has_a_watchdog_of_its_own() -> None:
    watchdog().ring_in(1_000, lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that threads don't come along is what is tried
        child = os.fork()
    if child == 0:
        rung = threading.Event()
        watchdog().ring_in(0.01, rung.set)
        os._exit(0 if rung.wait(20) else 1)
    until = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(ended[1]) == 0
