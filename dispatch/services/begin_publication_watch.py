"""Begins to watch a publication, in its transaction: was it as predicted?"""

from datetime import datetime, timedelta
from typing import Final

from django_q.tasks import async_task

from catalog.models import PublicModel
from dispatch.models import PublicationWatch

LASTS: Final = timedelta(minutes=30)
FORECAST: Final = "dispatch.tasks.forecast_publication"


def begin_publication_watch(
    model: PublicModel, instead_of: int | None, by: str, now: datetime
) -> PublicationWatch:
    """`model` is published at its revision; `instead_of` is what served before. A watch that goes on ends."""
    PublicationWatch.objects.filter(
        public_model=model, actual__isnull=True, published_at__lte=now, until_at__gt=now
    ).update(until_at=now)
    watch = PublicationWatch.objects.create(
        public_model=model,
        revision=model.revision,
        instead_of=instead_of,
        published_at=now,
        published_by=by,
        until_at=now + LASTS,
    )
    async_task(FORECAST, watch.pk, cluster="traffic")  # a replay takes seconds: the publication has none
    return watch
