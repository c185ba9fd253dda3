"""What a supply really made lately, beside what it declares: never blended with it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from catalog.models import Supply

SPAN: Final = timedelta(days=30)
MOST: Final = 2_000  # newest results that are looked at
VALUES_SHOWN: Final = 12

# A degraded attempt was sent less than its job asked for: what was sent is what was seen.
_SEEN: Final = """
WITH made AS (
    SELECT coalesce(attempt.sent_request, job.request) AS request
    FROM (
        SELECT job_id, sent_request FROM dispatch_attempt
        WHERE supply_id = %(supply)s AND finished_at > %(since)s AND finished_at <= %(now)s
          AND generated_at IS NOT NULL
        ORDER BY finished_at DESC LIMIT %(most)s) AS attempt
    JOIN dispatch_job AS job ON job.id = attempt.job_id)
SELECT told.field, told.value, count(*)
FROM made, LATERAL (VALUES
    ('all', 'all'),
    ('modes', request ->> 'mode'),
    ('durations_s', request ->> 'duration_s'),
    ('resolutions', request ->> 'resolution'),
    ('sizes', request ->> 'size'),
    ('aspect_ratios', request ->> 'aspect_ratio'),
    ('fps', request ->> 'fps'),
    ('audio', request ->> 'audio'),
    ('max_images', jsonb_array_length(CASE jsonb_typeof(request -> 'reference_images')
        WHEN 'array' THEN request -> 'reference_images' END)::text),
    ('max_videos', jsonb_array_length(CASE jsonb_typeof(request -> 'reference_videos')
        WHEN 'array' THEN request -> 'reference_videos' END)::text),
    ('max_audios', jsonb_array_length(CASE jsonb_typeof(request -> 'reference_audios')
        WHEN 'array' THEN request -> 'reference_audios' END)::text),
    ('max_n', request ->> 'n'),
    ('max_samples', request ->> 'sample_count')) AS told(field, value)
WHERE told.value IS NOT NULL
GROUP BY 1, 2 ORDER BY 3 DESC, 2"""

_MOST_OF: Final = ("max_images", "max_videos", "max_audios", "max_n", "max_samples")  # one number says it
_FLAGS: Final = {"true": "yes", "false": "no"}
_FIELDS: Final = (
    *("modes", "durations_s", "resolutions", "sizes", "aspect_ratios", "fps", "audio"),
    *_MOST_OF,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One field of a capability. `seen` are values with how often each was made, the most frequent first;
    for a limit the largest number alone. `beyond`: seen values that are not declared."""

    field: str
    declared: Any  # None: the document does not say
    seen: Sequence[tuple[str, int]]
    beyond: Sequence[str] = ()


@dataclass(frozen=True)
class Seen:
    """`results` were looked at; `is_cut`: there were more of them."""

    lines: Sequence[Line]
    results: int
    is_cut: bool


def seen_at(supply: Supply, declared: Mapping[str, Any], now: datetime) -> Seen:
    """One query over the newest MOST results of SPAN."""
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, {"supply": supply.pk, "since": now - SPAN, "now": now, "most": MOST})
        rows = cursor.fetchall()
    values: dict[str, list[tuple[str, int]]] = {}
    for field, value, number in rows:
        values.setdefault(field, []).append((value, number))
    results = sum(number for _value, number in values.pop("all", ()))
    lines = [
        _line(field, declared.get(field), values.get(field, ()))
        for field in _FIELDS
        if field in declared or values.get(field)
    ]
    return Seen(lines, results, results == MOST)


def _line(field: str, declared: Any, seen: Sequence[tuple[str, int]]) -> Line:
    if field in _MOST_OF:
        most = max(seen, key=lambda each: float(each[0]), default=None)
        return Line(field, declared, [most] if most else [], _above(declared, most))
    beyond = [value for value, _number in seen if not _is_declared(declared, value)]
    shown = [(_FLAGS.get(value, value), number) for value, number in seen[:VALUES_SHOWN]]
    return Line(field, declared, shown, beyond)


def _above(declared: Any, most: tuple[str, int] | None) -> list[str]:
    is_above = most is not None and isinstance(declared, int) and float(most[0]) > declared
    return [most[0]] if most and is_above else []


def _is_declared(declared: Any, value: str) -> bool:
    if declared is None or isinstance(declared, bool):
        return declared is not False or value != "true"
    if isinstance(declared, Mapping) and {"min", "max"} <= set(declared):
        return bool(declared["min"] <= float(value) <= declared["max"])
    if any(isinstance(each, Mapping) for each in declared):
        return True  # a rule about values, and no list of them
    return value in {each if isinstance(each, str) else json.dumps(each) for each in declared}
