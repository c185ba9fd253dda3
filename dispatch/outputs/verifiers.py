"""Processes that stand ready to decode: each has imported its parsers, and forks once for every file.

To start one takes a quarter of a second of processor time, a fork of it a few milliseconds. It parses nothing
itself: its child locks itself in, decodes one file and ends, so no file meets what another left behind."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, Final

PROGRAM: Final = Path(__file__).with_name("verify_media.py")
ENDED_WELL: Final = "0"
TOOK_TOO_LONG: Final = "timeout"
_FILES: Final = 200  # of one process: its successor has other addresses in its memory
_MOST_IDLE: Final = 4
_IDLE_S: Final = 60.0
_START_S: Final = 30.0  # to import the parsers, and to be given a processor


class Verifier:
    """One such process, for one file at a time. It ends with us, since its standard input does."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(PROGRAM)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
            )
        self.files = 0
        self.idle_since_s = 0.0  # monotonic

    def examine(self, file: BinaryIO, report: BinaryIO, order: Mapping[str, Any]) -> str:
        """How its child ended: `ENDED_WELL` with a report, `TOOK_TOO_LONG`, or by another exit code. Raises
        OSError where the process itself is lost."""
        self.files += 1
        self._ours.settimeout(order["wall_s"] + _START_S)
        socket.send_fds(self._ours, [json.dumps(order).encode()], [file.fileno(), report.fileno()])
        if told := self._ours.recv(64):
            return told.decode()
        raise ConnectionError("the verifier ended")

    def end(self) -> None:
        self._ours.close()
        self._process.kill()
        self._process.wait()


class _Idle:
    """Those that wait for their next file; the last one in is the first one out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Verifier] = []
        self._is_watched = False

    def take(self) -> Verifier | None:
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def put(self, verifier: Verifier) -> None:
        verifier.idle_since_s = monotonic()
        with self._lock:
            if verifier.files < _FILES and len(self._waiting) < _MOST_IDLE:
                self._waiting.append(verifier)
                self._watch()
                return
        verifier.end()

    def end_those_idle_for(self, seconds: float) -> None:
        with self._lock:
            since_s = monotonic() - seconds
            over = [verifier for verifier in self._waiting if verifier.idle_since_s <= since_s]
            self._waiting = [verifier for verifier in self._waiting if verifier not in over]
            self._is_watched = False
            if self._waiting:
                self._watch()
        for verifier in over:
            verifier.end()

    def _watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            timer = threading.Timer(_IDLE_S, self.end_those_idle_for, (_IDLE_S,))
            timer.daemon = True
            timer.start()


_idle = [_Idle()]


def examine(file: BinaryIO, report: BinaryIO, order: Mapping[str, Any]) -> str:
    """As `Verifier.examine`, by one that stands ready or a new one; one that was lost while it was idle says
    nothing about the file."""
    waiting = _idle[0].take()
    if waiting is not None:
        try:
            with _kept(waiting):
                return waiting.examine(file, report, order)
        except OSError:
            file.seek(0)
            report.seek(0)
            report.truncate()
    new = Verifier()
    with _kept(new):
        return new.examine(file, report, order)


@contextmanager
def _kept(verifier: Verifier) -> Iterator[None]:
    try:
        yield
    except BaseException:
        verifier.end()
        raise
    _idle[0].put(verifier)


def _begin_anew() -> None:
    """In a process that was forked: they answer the one that started them."""
    _idle[0] = _Idle()


os.register_at_fork(after_in_child=_begin_anew)
