"""Interleaved windows of programs that each run in a process of their own, and what they come to.

What anybody else uses of the machine meanwhile is read from /proc/stat: a noisy round is thrown away and
counted, and with too many of them there is no result at all.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

import psutil

TICKS: Final = os.sysconf("SC_CLK_TCK")  # per second and core
ROUNDS_PER_WANTED: Final = 3  # given up after so many times the planned rounds


class NoQuietWindow(Exception):
    """Others used too much of the machine for too long: nothing was measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    windows: int = 5  # of each program
    window_s: float = 3.0
    foreign_share: float = 0.2  # of the whole machine; a round with more is thrown away


@dataclass(frozen=True, slots=True)
class Window:
    """What one program did in one window; latencies are those of its units."""

    units: int
    cpu_s: float
    wall_s: float
    p50_ms: float = 0
    p99_ms: float = 0
    samples: Mapping[str, Any] = field(default_factory=dict)  # of one that tells its units apart

    @property
    def cpu_ms_per_unit(self) -> float:
        return self.cpu_s / self.units * 1_000

    @property
    def units_per_s(self) -> float:
        return self.units / self.wall_s


@dataclass(frozen=True, slots=True)
class Figures:
    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(min(values), median(values), max(values))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. What is judged is the ratio of the medians, or our median where nothing in the
    same run can be compared with it."""

    name: str
    ours: Figures
    reference: Figures | None = None
    bar: float | None = None  # None: told beside the others, judged by nobody
    goal: float | None = None
    unit: str = "CPU ms"  # of the figures; a ratio has none
    more_is_better: bool = False  # jobs a second, say

    @property
    def ratio(self) -> float | None:
        return None if self.reference is None else self.ours.median / self.reference.median

    @property
    def judged(self) -> float:
        return self.ours.median if self.ratio is None else self.ratio

    @property
    def passed(self) -> bool:
        return self.bar is None or self._reaches(self.bar)

    @property
    def verdict(self) -> str:
        if self.bar is None or self.goal is None:
            return "no bar"
        if self._reaches(self.goal):
            return f"goal {self.goal:g} met"
        return f"first bar {self.bar:g} met" if self.passed else f"first bar {self.bar:g} MISSED"

    def as_json(self) -> dict[str, Any]:
        sides = {"ours": self.ours, "reference": self.reference}
        figures = {side: None if it is None else _figures(it) for side, it in sides.items()}
        judged = {"ratio": self.ratio, "bar": self.bar, "goal": self.goal}
        return {"name": self.name, "unit": self.unit, **figures, **judged, "verdict": self.verdict}

    def _reaches(self, limit: float) -> bool:
        return self.judged >= limit if self.more_is_better else self.judged <= limit


def _figures(it: Figures) -> dict[str, float]:
    return {"min": it.least, "median": it.median, "max": it.most}


@dataclass(frozen=True, slots=True)
class Report:
    """`notes` are sentences below the table: sizes, versions, what was checked afterwards."""

    benchmark: str
    reference: str
    plan: Plan
    rows: tuple[Row, ...]
    discarded: int  # rounds
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return all(row.passed for row in self.rows)


class Program:
    """A module that serves units of work (tests.benchmarks.serving) in a process of its own."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """`environment` is that of an installation (tests.benchmarks.installation), else ours."""
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.told: Mapping[str, Any] = self._read()

    def window(self, seconds: float) -> Window:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return Window(**self._read())

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._module} ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)  # an end takes its time where all others work


def _cpu_ms(window: Window) -> float:
    return window.cpu_ms_per_unit


@dataclass(slots=True)
class Measured:
    windows: dict[str, list[Window]] = field(default_factory=dict)  # by the program's name
    discarded: int = 0

    def figures(self, name: str, of: Callable[[Window], float] = _cpu_ms) -> Figures:
        return Figures.of([of(window) for window in self.windows[name]])


def interleaved(programs: Mapping[str, Program], plan: Plan, database: int | None = None) -> Measured:
    """Rounds of a window of each program, until there are enough quiet ones. Raises NoQuietWindow.

    `database`: the process id of a server that works for nobody but the programs."""
    measured = Measured({name: [] for name in programs})
    pids = [os.getpid(), *(program.pid for program in programs.values())]
    # What the database does for a program is no foreign work, where the program tells which backends it has.
    pids += [pid for program in programs.values() for pid in program.told.get("backends", ())]
    for _ in range(plan.windows * ROUNDS_PER_WANTED):
        before, began = foreign_ticks(pids, database), monotonic()
        windows = {name: program.window(plan.window_s) for name, program in programs.items()}
        foreign_s = (foreign_ticks(pids, database) - before) / TICKS
        if foreign_s / (monotonic() - began) / (os.cpu_count() or 1) > plan.foreign_share:
            measured.discarded += 1
            continue
        for name, window in windows.items():
            measured.windows[name].append(window)
        if len(next(iter(measured.windows.values()))) == plan.windows:
            return measured
    raise NoQuietWindow(f"{measured.discarded} rounds were too noisy")


def foreign_ticks(pids: Sequence[int], family: int | None = None) -> int:
    """Processor time that all others have used since boot: neither these nor `family` with all below it."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    ours = sum(map(_ticks_of, pids)) + (family_ticks(family) if family else 0)
    return user + nice + system + irq + softirq + steal - ours


def family_ticks(pid: int) -> int:
    """Processor time of a process and of everything below it, also of what has ended and was waited for."""
    found = 0
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        with suppress(FileNotFoundError, ProcessLookupError):  # ended since
            found += _ticks_of(process.pid, ended=True)
    return found


def _ticks_of(pid: int, ended: bool = False) -> int:
    """`ended`: with those of its children that it has waited for."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if ended else 13]))
