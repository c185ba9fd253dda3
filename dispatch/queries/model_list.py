"""The list of public models: how each stands, how well it is supplied, and who waits for it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from django.db import connection

from catalog.models import AdminState, AuditEntry, PublicModel, SupplyBinding
from dispatch.models import Job
from dispatch.queries.bindings_now import circuit_of
from dispatch.queries.counting import COUNTED_UP_TO, capped
from dispatch.queries.off_air import OffAir, off_air
from dispatch.routing.types import TIERS

_OUT: Final = ("circuit_open", "disabled")
_HOUR: Final = timedelta(hours=1)
_WAITING_SQL = """
SELECT public_model_id, count(*) FROM (
    SELECT public_model_id FROM dispatch_job WHERE state = 'queued' LIMIT %s) AS waiting
GROUP BY public_model_id
"""


@dataclass(frozen=True, slots=True)
class Supplied:
    """Of one tier: how many bindings there are, and how many could take a job now."""

    tier: str
    bound: int
    usable: int


@dataclass(frozen=True, slots=True)
class ModelLine:
    """`waiting` is capped at COUNTED_UP_TO over all models; `warning` is "", no_exact or single."""

    model: PublicModel
    state: str
    supplied: Sequence[Supplied]
    waiting: int
    published_at: datetime | None
    published_by: str
    off_air: OffAir | None

    @property
    def warning(self) -> str:
        exact = self.supplied[0].usable
        if exact == 0:
            return "no_exact"
        return "single" if sum(each.usable for each in self.supplied) == 1 else ""


def model_lines(now: datetime) -> list[ModelLine]:
    """All of them, by slug; five queries, two more while one is out of production."""
    models = list(PublicModel.objects.select_related("policy").order_by("slug"))
    bindings = _bindings()
    waiting = _waiting()
    publications = newest_publications(models)
    closed = {each.model.pk: each for each in off_air()}
    return [
        ModelLine(
            model=model,
            state=state_of(model),
            supplied=_supplied(bindings.get(model.pk, ()), now),
            waiting=waiting.get(model.pk, 0),
            published_at=entry.at if (entry := publications.get(model.public_id)) else None,
            published_by=entry.actor if entry else "",
            off_air=closed.get(model.pk),
        )
        for model in models
    ]


def state_of(model: PublicModel) -> str:
    """draft, enabled, published, saved (and not published), withdrawn."""
    if model.published:
        return "published"
    if model.published_revision is None:
        return "enabled" if model.enabled else "draft"
    return "withdrawn" if model.revision == model.published_revision else "saved"


def _bindings() -> Mapping[int, list[SupplyBinding]]:
    rows = SupplyBinding.objects.select_related(
        "supply__health", "supply__channel__health", "degradation_rule"
    ).order_by("public_model_id", "id")
    return {key: list(group) for key, group in groupby(rows, key=lambda row: row.public_model_id)}


def _supplied(bindings: Iterable[SupplyBinding], now: datetime) -> list[Supplied]:
    bound: Counter[str] = Counter()
    usable: Counter[str] = Counter()
    for binding in bindings:
        bound[binding.tier] += 1
        usable[binding.tier] += is_usable(binding, now)
    return [Supplied(tier, bound[tier], usable[tier]) for tier in TIERS]


def is_usable(binding: SupplyBinding, now: datetime) -> bool:
    """Whether it could take a job now, if a slot is free. Reads the rows selected with the binding."""
    supply = binding.supply
    rule: Any = binding.degradation_rule
    return (
        binding.enabled
        and supply.state == supply.channel.state == AdminState.ENABLED
        and supply.capability_version_id is not None
        and circuit_of(supply).state not in _OUT
        and not (supply.sunset_on and supply.sunset_on < now.date())
        and (rule is None or rule.published_at is not None)
    )


def _waiting() -> dict[int, int]:
    """Queued jobs by model, up to COUNTED_UP_TO of all."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_SQL, [COUNTED_UP_TO])
        return dict(cursor.fetchall())


def newest_publications(models: Iterable[PublicModel]) -> dict[str, AuditEntry]:
    """By the model's public id."""
    subjects = [f"model:{model.public_id}" for model in models]
    entries = AuditEntry.objects.filter(subject__in=subjects, action="publish model")
    newest = entries.order_by("subject", "-at").distinct("subject")
    return {entry.subject.removeprefix("model:"): entry for entry in newest}


@dataclass(frozen=True, slots=True)
class Demand:
    """What taking a model out of production costs; both capped."""

    arrived_last_hour: int
    waiting: int


def demand_for(model: PublicModel, now: datetime) -> Demand:
    arrived = Job.objects.filter(public_model=model, created_at__gt=now - _HOUR)
    return Demand(arrived_last_hour=capped(arrived), waiting=waiting_for(model))


def waiting_for(model: PublicModel) -> int:
    """Capped."""
    return capped(Job.objects.filter(public_model=model, state="queued"))
