"""What a publication is expected to change: the replay of the day before it under the published revision."""

import logging
from datetime import datetime

from catalog.exceptions import CatalogueError
from catalog.models import ModelRevision
from catalog.policy import PolicyError
from dispatch.forecasts import Forecast
from dispatch.models import PublicationWatch
from dispatch.routing.effect import Effect
from dispatch.services.replay_effect import replay_effect

logger = logging.getLogger(__name__)


def forecast_publication(watch_id: int, now: datetime) -> None:
    """Does nothing where the forecast is there, or its time is over. A revision that nobody kept, or that
    can't be replayed, has an empty one."""
    watch = PublicationWatch.objects.filter(
        pk=watch_id, forecast__isnull=True, actual__isnull=True, until_at__gt=now
    ).first()
    if watch is None:
        return
    forecast = _forecast(watch).as_json()
    PublicationWatch.objects.filter(pk=watch_id, forecast__isnull=True).update(forecast=forecast)


def _forecast(watch: PublicationWatch) -> Forecast:
    revision = (
        ModelRevision.objects.select_related("public_model")
        .filter(public_model=watch.public_model_id, number=watch.revision)
        .first()
    )
    if revision is None:
        return Forecast()
    try:
        effect = replay_effect(revision, watch.published_at)
    except (CatalogueError, PolicyError):
        logger.exception("A publication has no forecast", extra={"model": revision.public_model.slug})
        return Forecast()
    return _of(effect, revision.document["policy"].get("currency", "USD"))


def _of(effect: Effect, currency: str) -> Forecast:
    return Forecast(
        picks=effect.picks,
        recorded=effect.recorded,
        replayed=effect.replayed,
        success=effect.expected_success if effect.picks else None,
        cost_per_success_micros=effect.cost_per_success_micros,
        currency=currency,
    )
