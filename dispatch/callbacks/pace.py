"""How many calls a door lets in: so many at once, and then as many a second; in memory, of this process."""

from collections import OrderedDict
from dataclasses import dataclass

_MOST_CALLERS = 1_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_s: float


class Pace:
    """By caller; who has not called for long is forgotten first. Times in seconds of one clock."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst, self._per_second = burst, per_second
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def admits(self, caller: str, now_s: float) -> bool:
        bucket = self._buckets.setdefault(caller, _Bucket(self._burst, now_s))
        self._buckets.move_to_end(caller)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self._burst, bucket.tokens + (now_s - bucket.at_s) * self._per_second)
        bucket.at_s = now_s
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
