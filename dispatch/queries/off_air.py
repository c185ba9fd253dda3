"""Public models that were in production and are not now: since when, by whom, and whom it costs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q

from catalog.models import AuditEntry, ModelRevision, PublicModel

LIMIT = 50


@dataclass(frozen=True, slots=True)
class OffAir:
    """`saved`: somebody saved a revision and did not publish it yet; else it was taken out as it was, and
    `by_rule` where a degradation rule that lost its verification did that. `since` and `by` are as far as
    is known; `refused` counts jobs."""

    model: PublicModel
    saved: bool
    since: datetime | None
    by: str
    refused: int
    by_rule: str = ""

    @property
    def is_meant(self) -> bool:
        """Somebody took it out and wants it out: no reason to be loud."""
        return not self.saved and not self.by_rule


def off_air(slug: str = "") -> list[OffAir]:
    """The longest-known first; one model or all. One query where all are in production, else three."""
    wanted = {"slug": slug} if slug else {}
    closed = PublicModel.objects.filter(published=False, published_revision__isnull=False, **wanted)
    models = list(closed.select_related("refused_meanwhile").order_by("id")[:LIMIT])
    if not models:
        return []
    saves, withdrawals = _first_saves(models), _withdrawals(models)
    return [_off_air(model, saves.get(model.pk), withdrawals.get(model.public_id)) for model in models]


def _off_air(model: PublicModel, save: ModelRevision | None, withdrawal: AuditEntry | None) -> OffAir:
    refused = model.refused_meanwhile.jobs if hasattr(model, "refused_meanwhile") else 0
    if model.revision != model.published_revision:
        since, by = (save.saved_at, save.saved_by) if save else (None, "")
        return OffAir(model, saved=True, since=since, by=by, refused=refused)
    after: dict[str, Any] = (withdrawal.after if withdrawal else None) or {}
    return OffAir(
        model,
        saved=False,
        since=withdrawal.at if withdrawal else None,
        by=withdrawal.actor if withdrawal else "",
        refused=refused,
        by_rule=after.get("because_of_rule", ""),
    )


def _first_saves(models: Iterable[PublicModel]) -> dict[int, ModelRevision]:
    """The save that took each out of production: the one after the published revision."""
    rows = ModelRevision.objects.filter(
        public_model__in=[model.pk for model in models], number=F("public_model__published_revision") + 1
    )
    return {row.public_model_id: row for row in rows.only("public_model_id", "saved_at", "saved_by")}


def _withdrawals(models: Sequence[PublicModel]) -> dict[str, AuditEntry]:
    """The newest of each model, by its public id."""
    as_it_was = [f"model:{model.public_id}" for model in models if model.revision == model.published_revision]
    entries = AuditEntry.objects.filter(Q(subject__in=as_it_was), action="withdraw model")
    newest = entries.order_by("subject", "-at").distinct("subject")
    return {entry.subject.removeprefix("model:"): entry for entry in newest}
