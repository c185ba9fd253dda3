"""An attempt's life as contiguous phases on one axis: what the waterfall and its table both show; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

PHASES: Final = ("queue", "prepare", "submit", "uncertain", "run", "deliver")
_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400)
_MOST_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class AttemptTimes:
    """When each phase began; None where it never did. `ended_at` None: it goes on."""

    number: int
    supply: str
    state: str
    waiting_from: datetime  # the job's creation, or the end of the attempt before
    created_at: datetime
    request_started_at: datetime | None = None
    uncertain_at: datetime | None = None
    accepted_at: datetime | None = None
    lost_at: datetime | None = None  # accepted, and then its outcome was not known any more
    generated_at: datetime | None = None
    ended_at: datetime | None = None
    changes: tuple[datetime, ...] = ()  # of the health of its supply and channel


@dataclass(frozen=True, slots=True)
class Segment:
    phase: str
    start_s: float  # from the job's creation
    seconds: float
    left: str  # per cent of the axis, as SVG wants it
    width: str

    @property
    def end_s(self) -> float:
        return self.start_s + self.seconds


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    supply: str
    state: str
    segments: Sequence[Segment]
    goes_on: bool
    marks: Sequence[str] = ()  # where a change of health lies, in per cent of the axis

    @property
    def seconds(self) -> float:
        return self.segments[-1].end_s - self.segments[0].start_s if self.segments else 0


@dataclass(frozen=True, slots=True)
class Timeline:
    axis_s: float
    ticks: Sequence[tuple[float, str]]  # seconds, and per cent of the axis
    lines: Sequence[Line]

    @property
    def has_marks(self) -> bool:
        return any(line.marks for line in self.lines)

    @property
    def phases(self) -> list[str]:
        """The phases that occur, in their order, for the legend."""
        used = {segment.phase for line in self.lines for segment in line.segments}
        return [phase for phase in PHASES if phase in used]


def timeline(start: datetime, attempts: Sequence[AttemptTimes], now: datetime) -> Timeline:
    """The axis begins at `start` and ends at a round number of seconds at or after the last end."""
    ends = [(attempt.ended_at or now) for attempt in attempts] or [now]
    axis_s, step_s = _axis(max((max(ends) - start).total_seconds(), 1.0))
    count = round(axis_s / step_s)
    ticks = [(i * step_s, _percent(i * step_s, axis_s)) for i in range(count + 1)]
    return Timeline(axis_s, ticks, [_line(attempt, start, axis_s, now) for attempt in attempts])


def _axis(least_s: float) -> tuple[float, float]:
    """Length and step: the smallest step that needs few ticks."""
    step = next((step for step in _STEPS_S if least_s / step <= _MOST_TICKS), _STEPS_S[-1])
    return step * -(-least_s // step), step


def _line(attempt: AttemptTimes, start: datetime, axis_s: float, now: datetime) -> Line:
    marks = [
        (attempt.waiting_from, "queue"),
        (attempt.created_at, "prepare"),
        (attempt.request_started_at, "submit"),
        (attempt.uncertain_at, "uncertain"),
        (attempt.accepted_at, "run"),
        (attempt.lost_at, "uncertain"),
        (attempt.generated_at, "deliver"),
    ]
    begun = sorted(((at, phase) for at, phase in marks if at is not None), key=lambda mark: mark[0])
    begun.append((max(attempt.ended_at or now, begun[-1][0]), "end"))
    segments = [
        _segment(phase, (at - start).total_seconds(), (until - at).total_seconds(), axis_s)
        for (at, phase), (until, _next) in pairwise(begun)
        if until > at
    ]
    changes = [(at - start).total_seconds() for at in attempt.changes]
    return Line(
        attempt.number,
        attempt.supply,
        attempt.state,
        segments,
        goes_on=attempt.ended_at is None,
        marks=[_percent(seconds, axis_s) for seconds in changes if 0 <= seconds <= axis_s],
    )


def _segment(phase: str, start_s: float, seconds: float, axis_s: float) -> Segment:
    return Segment(phase, start_s, seconds, _percent(start_s, axis_s), _percent(seconds, axis_s))


def _percent(seconds: float, axis_s: float) -> str:
    return f"{100 * seconds / axis_s:.3f}%"
