"""Keeps the medians of providers' times by kind of work: the fair queue estimates costs by them."""

from datetime import datetime, timedelta
from typing import Final

from django.db import connection

from dispatch.estimates import LEAST_SAMPLES
from dispatch.models import ProviderTime

EVERY: Final = timedelta(minutes=10)
WINDOW: Final = timedelta(days=1)
MOST_OF_A_SUPPLY: Final = 300

_MEASURE = """
INSERT INTO dispatch_providertime (public_model_id, mode, size, duration_s, p50_ms, samples, refreshed_at)
SELECT job.public_model_id, left(job.request ->> 'mode', 20),
       left(coalesce(job.request ->> 'resolution', job.request ->> 'size', ''), 20),
       coalesce((job.request ->> 'duration_s')::numeric, 0),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY greatest(1, round(
           1000 * extract(epoch FROM ended.generated_at - ended.accepted_at) / greatest(1, coalesce(
               (job.request ->> 'sample_count')::int, (job.request ->> 'n')::int, 1)))::bigint)),
       count(*), %(now)s
FROM catalog_supply AS supply
CROSS JOIN LATERAL (
    SELECT job_id, accepted_at, generated_at FROM dispatch_attempt
    WHERE supply_id = supply.id AND finished_at > %(since)s
      AND generated_at IS NOT NULL AND accepted_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT %(most)s) AS ended
JOIN dispatch_job AS job ON job.id = ended.job_id
GROUP BY 1, 2, 3, 4 HAVING count(*) >= %(least)s
ON CONFLICT (public_model_id, mode, size, duration_s)
DO UPDATE SET p50_ms = excluded.p50_ms, samples = excluded.samples, refreshed_at = excluded.refreshed_at"""


def measure_times(now: datetime) -> None:
    """Of the newest successes of each supply. A kind of work that was not seen for a day keeps its median."""
    newest = ProviderTime.objects.order_by("-refreshed_at").values_list("refreshed_at", flat=True).first()
    if newest is not None and now - newest < EVERY:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _MEASURE,
            {"now": now, "since": now - WINDOW, "most": MOST_OF_A_SUPPLY, "least": LEAST_SAMPLES},
        )
