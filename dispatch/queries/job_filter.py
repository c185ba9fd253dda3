"""What the list of jobs may be narrowed to: read from an address, and put to the database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import BooleanField, Exists, F, Func, JSONField, OuterRef, Q, QuerySet, Value
from django.http import QueryDict

from billing.models import Customer
from catalog.models import Modality, PublicModel, Supply, Tier
from dispatch.lifecycle import UNKNOWN_STATES, JobState
from dispatch.models import Attempt, Job, SelectionRound

PAGE_SIZES: Final = (50, 100, 200)
LOOKED_AT: Final = 1_000  # of selection rounds: each snapshot is opened to see who was excluded
SPANS: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
_ATTEMPTS: Final = Attempt.objects.filter(job=OuterRef("pk"))
_UNKNOWN: Final = sorted(UNKNOWN_STATES)
# Each look into a snapshot unpacks it: one look for all tiers.
_LEFT_OUT: Final = (
    "$.decision.candidates.keyvalue()"
    f" ? (@.key == $plain || {' || '.join(f'@.key == ${tier}' for tier in Tier.values)})"
    ".value.reason ? (@ != null)"
)
# "dropped" as the index of degraded deliveries says it, "switch" as that of second attempts.
HAD: Final[Mapping[str, Any]] = {
    "switch": Exists(_ATTEMPTS.filter(number=2)),
    "dropped": ~Q(dropped_inputs=[]) & Q(state=JobState.SUCCEEDED),
    "uncertain": Exists(_ATTEMPTS.filter(state__in=_UNKNOWN)),
}


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What the address asks for; values that don't exist are dropped."""

    states: tuple[str, ...] = ()
    model: str = ""  # slug
    modality: str = ""
    customer: str = ""  # public id
    supply: str = ""  # slug: an attempt was made there
    since: str = ""  # of SPANS
    had: tuple[str, ...] = ()  # of HAD
    excluded: str = ""  # slug of a supply that a selection round left out
    older: str = ""  # public id of the job before whose row the page begins
    newer: str = ""
    size: int = PAGE_SIZES[0]

    @property
    def more(self) -> int:
        """How many of the rarer filters are set."""
        return len(self.had) + bool(self.excluded)

    def matches(self, job: Job, attempts: Sequence[Attempt]) -> bool:
        """Whether a row on the screen still belongs there. Who was excluded is a record, and stays."""
        return (
            (not self.states or job.state in self.states)
            and self.model in ("", job.public_model.slug)
            and self.modality in ("", job.modality)
            and self.customer in ("", job.customer.public_id)
            and self.supply in ("", *(attempt.supply.slug for attempt in attempts))
            and set(self.had) <= set(_had(job, attempts))
        )


def _had(job: Job, attempts: Sequence[Attempt]) -> Iterable[str]:
    if len(attempts) > 1:
        yield "switch"
    if job.dropped_inputs and job.state == JobState.SUCCEEDED:
        yield "dropped"
    if any(attempt.state in UNKNOWN_STATES for attempt in attempts):
        yield "uncertain"


def parse_filter(query: QueryDict) -> JobFilter:
    size, modality, since = query.get("size", ""), query.get("modality", ""), query.get("since", "")
    return JobFilter(
        states=tuple(state for state in query.getlist("state") if state in set(JobState)),
        model=query.get("model", "")[:80],
        modality=modality if modality in Modality.values else "",
        customer=query.get("customer", "")[:40],
        supply=query.get("supply", "")[:80],
        since=since if since in SPANS else "",
        had=tuple(name for name in HAD if name in query.getlist("had")),
        excluded=query.get("excluded", "")[:80],
        older=query.get("older", "")[:40],
        newer=query.get("newer", "")[:40],
        size=int(size) if size in map(str, PAGE_SIZES) else PAGE_SIZES[0],
    )


def matching(wanted: JobFilter, now: datetime) -> QuerySet[Job]:
    """Unordered, and without regard to the cursor.

    By row ids, that are looked up before: so the planner knows how common each of them is."""
    jobs = Job.objects.filter(state__in=wanted.states) if wanted.states else Job.objects.all()
    if wanted.model or wanted.modality:
        jobs = jobs.filter(public_model__in=_models(wanted))
    if wanted.customer:
        customers = Customer.objects.filter(public_id=wanted.customer)
        jobs = jobs.filter(customer__in=list(customers.values_list("pk", flat=True)))
    if wanted.since:
        jobs = jobs.filter(created_at__gte=now - SPANS[wanted.since])
    if wanted.supply:
        supplies = list(Supply.objects.filter(slug=wanted.supply).values_list("pk", flat=True))
        jobs = jobs.filter(Exists(_ATTEMPTS.filter(supply__in=supplies)))
    for name in wanted.had:
        jobs = jobs.filter(HAD[name])
    return jobs.filter(pk__in=_excluded(wanted.excluded)) if wanted.excluded else jobs


def _models(wanted: JobFilter) -> list[int]:
    """A job is of its model's modality."""
    models = PublicModel.objects.filter(slug=wanted.model) if wanted.model else PublicModel.objects.all()
    models = models.filter(modality=wanted.modality) if wanted.modality else models
    return list(models.values_list("pk", flat=True))


def _excluded(supply: str) -> QuerySet[Any, int]:
    """Jobs of the newest rounds that left it out, whichever tier it was bound in."""
    newest = SelectionRound.objects.order_by("-id").values("pk")[:LOOKED_AT]
    keys = {"plain": supply} | {tier: f"{supply}@{tier}" for tier in Tier.values}
    left_out = Func(
        F("snapshot"),
        Value(_LEFT_OUT),
        Value(keys, JSONField()),
        function="jsonb_path_exists",
        output_field=BooleanField(),
    )
    return SelectionRound.objects.filter(left_out, pk__in=newest).values_list("job", flat=True)
