"""Tells operators of a model that was saved and is still not published: its customers are refused."""

from datetime import datetime, timedelta

from dispatch.queries.off_air import OffAir, off_air
from health.alerts import raise_alert, resolve_unseen

CODE = "model_not_published"
TOLD_AFTER = timedelta(minutes=5)


def watch_publication(now: datetime) -> None:
    """Once a minute."""
    for each in off_air():
        if _is_late(each, now):
            slug = each.model.slug
            details = {"revision": each.model.revision, "by": each.by, "refused": each.refused}
            raise_alert(CODE, subject=f"model:{slug}", dedupe_key=f"{CODE}:{slug}", details=details, now=now)
    resolve_unseen([CODE], now, "the model is published, or was taken out on purpose", now)


def _is_late(each: OffAir, now: datetime) -> bool:
    return not each.is_meant and each.since is not None and now - each.since >= TOLD_AFTER
