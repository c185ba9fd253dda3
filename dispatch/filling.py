"""How soon a place has no free slot left, if things go on as they did; pure."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

WINDOW: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Flow:
    """Of one place in the last WINDOW: attempts that were sent, and those that came to an end."""

    began: int = 0
    ended: int = 0

    def __add__(self, other: "Flow") -> "Flow":
        return Flow(self.began + other.began, self.ended + other.ended)


def time_to_full(free: int, flow: Flow) -> timedelta | None:
    """None: it does not fill up. A place without a free slot is full now."""
    if free <= 0:
        return timedelta(0)
    growth = flow.began - flow.ended
    return free * WINDOW / growth if growth > 0 else None
