"""How well supplies did in the last day, by half-hours, and why they failed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

from dispatch.models import Attempt
from dispatch.samples import SAMPLE, SUCCESS

DAY: Final = timedelta(days=1)
BUCKETS: Final = 48
MOST: Final = 2_000  # newest ends of each supply: its cost is bounded, whatever the traffic
FAILURES_SHOWN: Final = 10

_ENDED = f"""
SELECT supply.id, ended.bucket, count(*), count(*) FILTER (WHERE ended.succeeded)
FROM unnest(%(supplies)s::bigint[]) AS supply(id)
JOIN LATERAL (
    SELECT {SUCCESS} AS succeeded,
           least(47, floor(extract(epoch FROM finished_at - %(since)s::timestamptz) / 1800))::int AS bucket
    FROM dispatch_attempt AS attempt
    WHERE supply_id = supply.id AND finished_at > %(since)s AND finished_at <= %(now)s AND {SAMPLE}
    ORDER BY finished_at DESC LIMIT %(most)s
) AS ended ON true
GROUP BY 1, 2"""  # noqa: S608 - our own words

_FAILED = """
SELECT id FROM (
    SELECT id, state FROM dispatch_attempt
    WHERE supply_id = %(supply)s AND finished_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT %(most)s) AS newest
WHERE state IN ('failed', 'abandoned') LIMIT %(shown)s"""


@dataclass(frozen=True, slots=True)
class Bucket:
    samples: int
    successes: int

    @property
    def rate(self) -> float | None:
        return self.successes / self.samples if self.samples else None


@dataclass(frozen=True, slots=True)
class DayOfSuccess:
    """The last day in BUCKETS half-hours, the oldest first. Content refusals and what customers cancelled
    are no samples."""

    buckets: Sequence[Bucket]

    @property
    def samples(self) -> int:
        return sum(each.samples for each in self.buckets)

    @property
    def rate(self) -> float | None:
        return sum(each.successes for each in self.buckets) / self.samples if self.samples else None

    @property
    def lowest(self) -> float | None:
        return min((each.rate for each in self.buckets if each.rate is not None), default=None)


def success_of(supplies: Collection[int], now: datetime) -> Mapping[int, DayOfSuccess]:
    """By supply; one query."""
    counted: dict[int, dict[int, Bucket]] = {supply: {} for supply in supplies}
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, {"supplies": list(supplies), "since": now - DAY, "now": now, "most": MOST})
        for supply, bucket, samples, successes in cursor.fetchall():
            counted[supply][bucket] = Bucket(samples, successes)
    return {
        supply: DayOfSuccess([found.get(index, Bucket(0, 0)) for index in range(BUCKETS)])
        for supply, found in counted.items()
    }


def last_failures(supply: int) -> list[Attempt]:
    """The newest that ended without a result, by the index of ends; two queries."""
    with connection.cursor() as cursor:
        cursor.execute(_FAILED, {"supply": supply, "most": MOST, "shown": FAILURES_SHOWN})
        failed = [pk for (pk,) in cursor.fetchall()]
    return list(Attempt.objects.filter(pk__in=failed).select_related("job").order_by("-finished_at"))
