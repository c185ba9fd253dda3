"""Counts by the hour what was selected and how it ended; the hours that may still change are counted anew."""

from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Max

from dispatch.hours import COUNTED_EVERY, HOUR, WORK_KEPT_FOR, hour_of
from dispatch.models import HourOfWork
from dispatch.samples import SAMPLE, SUCCESS

_COUNT = f"""
WITH counted AS (
    SELECT date_trunc('hour', round.created_at) AS hour, job.public_model_id, attempt.supply_id,
           attempt.tier, attempt.quote_currency AS currency,
           count(*) AS picks, count(*) FILTER (WHERE attempt.number > 1) AS switches,
           0 AS samples, 0 AS successes, 0 AS ended, 0 AS delivered,
           0::numeric AS spent, 0::numeric AS wasted
    FROM dispatch_selectionround AS round
    JOIN dispatch_attempt AS attempt ON attempt.selection_round_id = round.id
    JOIN dispatch_job AS job ON job.id = round.job_id
    WHERE round.created_at >= %(since)s AND round.created_at <= %(now)s
    GROUP BY 1, 2, 3, 4, 5
    UNION ALL
    SELECT date_trunc('hour', ended.finished_at), job.public_model_id, supply.id, ended.tier,
           ended.quote_currency, 0, 0,
           count(*) FILTER (WHERE ended.is_sample), count(*) FILTER (WHERE ended.is_success),
           count(*), count(*) FILTER (WHERE ended.state = 'succeeded'),
           coalesce(sum(ended.cost_micros), 0),
           coalesce(sum(ended.cost_micros) FILTER (WHERE ended.state <> 'succeeded'), 0)
    FROM catalog_supply AS supply
    JOIN LATERAL (
        SELECT job_id, tier, quote_currency, state, cost_micros, finished_at,
               {SAMPLE} AS is_sample, {SUCCESS} AS is_success
        FROM dispatch_attempt AS attempt
        WHERE supply_id = supply.id AND finished_at >= %(since)s AND finished_at <= %(now)s
    ) AS ended ON true
    JOIN dispatch_job AS job ON job.id = ended.job_id
    GROUP BY 1, 2, 3, 4, 5)
INSERT INTO dispatch_hourofwork (
    hour, public_model_id, supply_id, tier, currency, picks, switches, samples, successes, ended, delivered,
    spent_micros, wasted_micros, counted_at)
SELECT hour, public_model_id, supply_id, tier, currency, sum(picks), sum(switches), sum(samples),
       sum(successes), sum(ended), sum(delivered), sum(spent), sum(wasted), %(now)s
FROM counted GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (hour, public_model_id, supply_id, tier, currency)
DO UPDATE SET picks = excluded.picks, switches = excluded.switches, samples = excluded.samples,
    successes = excluded.successes, ended = excluded.ended, delivered = excluded.delivered,
    spent_micros = excluded.spent_micros, wasted_micros = excluded.wasted_micros,
    counted_at = excluded.counted_at"""  # noqa: S608 - our own words


def count_hours(now: datetime) -> None:
    """The present hour, the one before it, and those that were missed; one statement. What is older than
    WORK_KEPT_FOR is forgotten."""
    known = HourOfWork.objects.aggregate(counted_at=Max("counted_at"), hour=Max("hour"))
    if known["counted_at"] is not None and timedelta(0) <= now - known["counted_at"] < COUNTED_EVERY:
        return
    count_since(_first_hour(known["hour"], now), now)


def count_since(since: datetime, now: datetime) -> None:
    """Every hour from the one of `since` on."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_COUNT, {"since": hour_of(since), "now": now})
        HourOfWork.objects.filter(hour__lt=now - WORK_KEPT_FOR).delete()


def _first_hour(newest: datetime | None, now: datetime) -> datetime:
    """A cost may be settled a little after its attempt has ended: the hour before is counted again too."""
    return (
        now - WORK_KEPT_FOR + HOUR
        if newest is None
        else max(min(newest, now) - HOUR, now - WORK_KEPT_FOR + HOUR)
    )
