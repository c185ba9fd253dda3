"""Once a minute: keeps what came of publications whose time is over, and asks again for a lost forecast."""

from datetime import datetime, timedelta
from typing import Final

from django_q.tasks import async_task

from dispatch.forecasts import Forecast, compare
from dispatch.models import PublicationWatch
from dispatch.queries.publication_watches import actual_of
from dispatch.services.begin_publication_watch import FORECAST

ASKED_AGAIN_AFTER: Final = timedelta(minutes=2)


def end_publication_watches(now: datetime) -> None:
    going_on = PublicationWatch.objects.filter(actual__isnull=True)
    for watch in going_on.filter(until_at__lte=now).order_by("id"):
        _end(watch, now)
    lost = going_on.filter(
        forecast__isnull=True, until_at__gt=now, published_at__lte=now - ASKED_AGAIN_AFTER
    ).order_by("id")
    for number in lost.values_list("pk", flat=True):
        async_task(FORECAST, number, cluster="traffic")


def _end(watch: PublicationWatch, now: datetime) -> None:
    actual = actual_of(watch, now)
    compared = compare(Forecast.read(watch.forecast or {}), actual)
    PublicationWatch.objects.filter(pk=watch.pk, actual__isnull=True).update(
        actual=actual.as_json(),
        share_error=compared.share_error,
        success_error=compared.success_difference,
        cost_error=compared.cost_difference,
    )
