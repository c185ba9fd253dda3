"""Publications that are watched, or were: the forecast beside what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import QuerySet

from catalog.models import PublicModel
from dispatch.forecasts import Actual, Comparison, Forecast, compare
from dispatch.models import PublicationWatch
from dispatch.samples import SAMPLE, SUCCESS

SHOWN_FOR: Final = timedelta(days=1)  # on the model's page, once it is over
REMEMBERED: Final = 10  # of a model: how far off the last ones were

# What was selected in a watch's time: as short as the watch, whatever else runs.
_SELECTED = f"""
SELECT supply.slug, count(*),
       count(*) FILTER (WHERE {SAMPLE}), count(*) FILTER (WHERE {SUCCESS}),
       count(attempt.finished_at), count(*) FILTER (WHERE attempt.state = 'succeeded'),
       coalesce(sum(attempt.cost_micros) FILTER (WHERE attempt.finished_at IS NOT NULL), 0)::bigint
FROM dispatch_selectionround AS round
JOIN dispatch_attempt AS attempt ON attempt.selection_round_id = round.id
JOIN dispatch_job AS job ON job.id = round.job_id
JOIN catalog_supply AS supply ON supply.id = attempt.supply_id
WHERE round.created_at >= %(since)s AND round.created_at < %(until)s AND job.public_model_id = %(model)s
GROUP BY 1 ORDER BY 2 DESC, 1"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Watched:
    watch: PublicationWatch
    forecast: Forecast
    actual: Actual
    compared: Comparison

    @property
    def is_over(self) -> bool:
        return self.watch.actual is not None

    @property
    def is_worked_out(self) -> bool:
        return self.watch.forecast is not None


def actual_of(watch: PublicationWatch, now: datetime) -> Actual:
    """One query."""
    since, until = watch.published_at, min(watch.until_at, now)
    with connection.cursor() as cursor:
        cursor.execute(_SELECTED, {"since": since, "until": until, "model": watch.public_model_id})
        rows = cursor.fetchall()
    samples, successes, ended, delivered, spent = (sum(row[column] for row in rows) for column in range(2, 7))
    return Actual({row[0]: row[1] for row in rows}, samples, successes, ended, delivered, spent)


def is_watched(model: PublicModel, now: datetime) -> bool:
    """Whether there is something to show on the model's page; one query."""
    return _shown(model, now).exists()


def _shown(model: PublicModel, now: datetime) -> QuerySet[PublicationWatch]:
    return PublicationWatch.objects.filter(public_model=model, until_at__gt=now - SHOWN_FOR)


def watched_now(model: PublicModel, now: datetime) -> Watched | None:
    """The newest of a model, while it goes on and for SHOWN_FOR after; at most two queries."""
    watch = _shown(model, now).order_by("-published_at", "-id").first()
    return None if watch is None else _watched(watch, now)


def watches_of(model: PublicModel) -> Sequence[Watched]:
    """Those that are over, newest first, at most REMEMBERED; one query."""
    rows = PublicationWatch.objects.filter(public_model=model, actual__isnull=False)
    return [_over(row) for row in rows.order_by("-published_at", "-id")[:REMEMBERED]]


def by_revision(model: PublicModel) -> Mapping[int, Watched]:
    """Of each revision, the newest that is over; one query."""
    rows = PublicationWatch.objects.filter(public_model=model, actual__isnull=False)
    newest = rows.order_by("revision", "-published_at", "-id").distinct("revision")
    return {row.revision: _over(row) for row in newest}


def _watched(watch: PublicationWatch, now: datetime) -> Watched:
    if watch.actual is not None:
        return _over(watch)
    forecast, actual = Forecast.read(watch.forecast or {}), actual_of(watch, now)
    return Watched(watch, forecast, actual, compare(forecast, actual))


def _over(watch: PublicationWatch) -> Watched:
    forecast, actual = Forecast.read(watch.forecast or {}), Actual.read(watch.actual or {})
    return Watched(watch, forecast, actual, compare(forecast, actual))
