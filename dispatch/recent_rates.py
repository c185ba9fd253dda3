"""What ended and what was sent in the last quarter of an hour, and in the rest of the last day.

Each query walks one index from its newest entry, for each supply or model, and at most MOST rows of it: so
its cost is bounded by the catalogue, not by the traffic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from dispatch.baselines import Costs, Share, Spans
from dispatch.samples import FAILURE, SUCCESS

WINDOW = timedelta(minutes=15)
DAY = timedelta(days=1)
NO_SHARE, NO_SPANS, NO_COSTS = Share(), Spans(), Costs()
MOST = 1_000  # newest of each supply or model in each of the two spans


@dataclass(frozen=True, slots=True)
class SupplyFigures:
    """Of one supply in one span of time."""

    unknown: Share = NO_SHARE  # submissions whose outcome became unknown, of all that were sent
    errors: Share = NO_SHARE  # failures that count as samples of success, of all samples
    refusals: Share = NO_SHARE  # content refusals, of these and all generations
    spans: Spans = NO_SPANS  # from acceptance to generation


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """Of one public model's jobs that had an attempt and ended in one span of time."""

    switched: Share = NO_SHARE  # those that needed a second attempt
    costs: Costs = NO_COSTS


@dataclass(frozen=True, slots=True)
class Recent[Figures]:
    """The last quarter of an hour, and the rest of the last day before it."""

    now: Figures
    before: Figures


_ENDED_SQL = f"""
SELECT supply.id,
       count(*) FILTER (WHERE failed), count(*) FILTER (WHERE failed OR generated),
       count(*) FILTER (WHERE refused), count(*) FILTER (WHERE refused OR generated),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE generated),
       count(seconds) FILTER (WHERE generated)
FROM unnest(%(ids)s::bigint[]) AS supply(id)
JOIN LATERAL (
    SELECT {SUCCESS} AS generated, {FAILURE} AS failed,
           generated_at IS NULL AND state = 'failed' AND error_category = 'content' AS refused,
           extract(epoch FROM generated_at - accepted_at)::float AS seconds
    FROM dispatch_attempt AS attempt
    WHERE supply_id = supply.id AND finished_at > %(since)s AND finished_at <= %(until)s
    ORDER BY finished_at DESC LIMIT %(most)s
) AS ended ON true
GROUP BY supply.id
"""  # noqa: S608 - our own words

# An attempt gives its evidence when its outcome becomes unknown, else not before its acceptance or its end.
_SENT_SQL = """
SELECT supply.id, count(*) FILTER (WHERE became_unknown), count(*)
FROM unnest(%(ids)s::bigint[]) AS supply(id)
JOIN LATERAL (
    SELECT evidence_at IS NOT NULL
               AND evidence_at < coalesce(accepted_at, finished_at, 'infinity') AS became_unknown
    FROM dispatch_attempt
    WHERE supply_id = supply.id AND request_started_at > %(since)s AND request_started_at <= %(until)s
    ORDER BY request_started_at DESC LIMIT %(most)s
) AS sent ON true
GROUP BY supply.id
"""

_JOBS_SQL = """
SELECT model.id,
       count(*), count(*) FILTER (WHERE state = 'succeeded'), coalesce(sum(provider_cost_micros), 0)::bigint,
       count(*) FILTER (WHERE EXISTS (
           SELECT FROM dispatch_attempt WHERE job_id = ended.id AND number = 2))
FROM unnest(%(ids)s::bigint[]) AS model(id)
JOIN LATERAL (
    SELECT id, state, provider_cost_micros
    FROM dispatch_job
    WHERE public_model_id = model.id AND finished_at > %(since)s AND finished_at <= %(until)s
        AND started_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT %(most)s
) AS ended ON true
GROUP BY model.id
"""


def supply_figures(supply_ids: Iterable[int], now: datetime) -> Mapping[int, Recent[SupplyFigures]]:
    """Of each of `supply_ids`."""
    ids = list(supply_ids)
    recent, before = (_of_supplies(ids, since, until) for since, until in _spans(now))
    return {pk: Recent(recent[pk], before[pk]) for pk in ids}


def model_figures(model_ids: Iterable[int], now: datetime) -> Mapping[int, Recent[ModelFigures]]:
    """Of each of `model_ids`."""
    ids = list(model_ids)
    recent, before = (_of_models(ids, since, until) for since, until in _spans(now))
    return {pk: Recent(recent[pk], before[pk]) for pk in ids}


def _spans(now: datetime) -> tuple[tuple[datetime, datetime], tuple[datetime, datetime]]:
    """A query each: with its bounds as constants the planner sees that the newest rows are enough."""
    return (now - WINDOW, now), (now - DAY, now - WINDOW)


def _of_supplies(ids: list[int], since: datetime, until: datetime) -> dict[int, SupplyFigures]:
    unknown = {pk: Share(part, whole) for pk, part, whole in _rows(_SENT_SQL, ids, since, until)}
    found = {pk: SupplyFigures(unknown=unknown.get(pk, NO_SHARE)) for pk in ids}
    for pk, failed, samples, refused, judged, median, spans in _rows(_ENDED_SQL, ids, since, until):
        found[pk] = SupplyFigures(
            unknown=unknown.get(pk, NO_SHARE),
            errors=Share(failed, samples),
            refusals=Share(refused, judged),
            spans=Spans(median or 0.0, spans),
        )
    return found


def _of_models(ids: list[int], since: datetime, until: datetime) -> dict[int, ModelFigures]:
    found = dict.fromkeys(ids, ModelFigures())
    for pk, ended, succeeded, micros, switched in _rows(_JOBS_SQL, ids, since, until):
        found[pk] = ModelFigures(Share(switched, ended), Costs(ended, succeeded, micros))
    return found


def _rows(sql: str, ids: list[int], since: datetime, until: datetime) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"ids": ids, "since": since, "until": until, "most": MOST})
        return cursor.fetchall()
