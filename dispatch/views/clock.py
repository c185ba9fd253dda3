"""The moment of one drawing, and until when the ages that it tells read the same."""

from datetime import datetime, timedelta
from typing import Final

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_HALF: Final = 0.5  # of a second: an age is told rounded


class Clock:
    """`until` is None as long as no age was told."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.until: datetime | None = None

    def age(self, start: datetime) -> timedelta:
        """For an age that is drawn: how long it has been since `start`."""
        age = self.now - start
        ends = self.now + timedelta(seconds=reads_the_same_for(age.total_seconds()))
        self.until = ends if self.until is None else min(self.until, ends)
        return age


def reads_the_same_for(seconds: float) -> float:
    """How long the text of a growing duration stays as it is: from an hour on it tells minutes, from a day on
    hours, and below that each second, which is no time at all."""
    whole = round(seconds)
    if whole < _HOUR:
        return 0
    step = 60 if whole < _DAY else _HOUR
    return max(0, (whole // step + 1) * step - _HALF - seconds)


def as_it_reads(seconds: float) -> float:
    """The least duration that is told by the same text: where it grows, it changes when the text does."""
    if seconds < _HOUR:
        return seconds
    step = 60 if round(seconds) < _DAY else _HOUR
    return round(seconds) // step * step
