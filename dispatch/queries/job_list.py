"""The list of jobs: newest first, cut by a cursor that is the id of a row."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from billing.models import Customer
from catalog.models import AdminState, PublicModel, Supply, SupplyBinding
from dispatch.lifecycle import FINAL_JOB_STATES, JobState
from dispatch.models import Attempt, Job
from dispatch.queries.job_filter import JobFilter, matching

MOST_EXPORTED = 10_000
# What lists and exports tell of a job and its attempts. Documents, of which they have several, stay unread.
_TOLD = (
    *("public_id", "state", "modality", "project", "dropped_inputs", "error_code", "cancel_requested_at"),
    *("provider_cost_micros", "charged_micros", "created_at", "finished_at"),
    *("public_model__slug", "customer__public_id", "customer__name", "customer__currency"),
)
_TOLD_OF_ATTEMPTS = ("job", "number", "state", "tier", "quote_currency", "supply__slug")
_CHOICES_LIMIT = 200  # of customers in the filter; more are found by their id


@dataclass(frozen=True, slots=True)
class JobLine:
    """All that the list shows of a job: lines that are equal look alike."""

    public_id: str
    state: str
    model: str  # slug, as the supply
    supply: str  # of the latest attempt, or ""
    attempts: int
    delivered_as: str  # tier, or ""
    dropped: int  # inputs
    seconds: float
    is_ended: bool
    cost_micros: int  # 0 where no attempt was made
    currency: str
    customer: str
    created_at: datetime
    can_be_cancelled: bool
    still_matches: bool


@dataclass(frozen=True)
class JobRow:
    """A job of the list, with what its latest attempt says."""

    job: Job
    attempts: Sequence[Attempt]
    seconds: float  # from creation to the end, or to now
    still_matches: bool = True

    @property
    def latest(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def line(self) -> JobLine:
        job, latest = self.job, self.latest
        return JobLine(
            public_id=job.public_id,
            state=job.state,
            model=job.public_model.slug,
            supply=latest.supply.slug if latest else "",
            attempts=len(self.attempts),
            delivered_as=latest.tier if latest and job.state == JobState.SUCCEEDED else "",
            dropped=len(job.dropped_inputs),
            seconds=self.seconds,
            is_ended=job.finished_at is not None,
            cost_micros=job.provider_cost_micros if latest else 0,
            currency=latest.quote_currency if latest else "",
            customer=job.customer.name,
            created_at=job.created_at,
            can_be_cancelled=job.finished_at is None and job.cancel_requested_at is None,
            still_matches=self.still_matches,
        )


@dataclass(frozen=True)
class JobPage:
    rows: Sequence[JobRow]
    older: str  # cursor of the next page, or ""
    newer: str
    about: int | None  # the planner's estimate of all that match; None where it knows no more than the page


def job_page(wanted: JobFilter, now: datetime) -> JobPage:
    """At most `wanted.size` rows. Four queries: cursor, jobs, attempts, estimate."""
    found = matching(wanted, now)
    jobs, more = _cut(found, wanted)
    older, newer = _cursors(jobs, more, wanted)
    about = _estimate(found, len(jobs)) if older or newer else None
    return JobPage([_row(job, now) for job in jobs], older, newer, about)


def rows_again(ids: Sequence[str], wanted: JobFilter, now: datetime) -> list[JobRow]:
    """The rows that are on a screen, in its order, as they are now; one that no longer matches stays."""
    found = {job.public_id: job for job in _complete(Job.objects.filter(public_id__in=ids))}
    rows = [_row(found[public_id], now) for public_id in ids if public_id in found]
    return [replace(row, still_matches=wanted.matches(row.job, row.attempts)) for row in rows]


def newest_ids(wanted: JobFilter, as_of: datetime, most: int) -> list[int]:
    """Of what matches and had been created by then, newest first."""
    found = matching(wanted, as_of).filter(created_at__lte=as_of)
    return list(found.order_by("-created_at", "-id").values_list("pk", flat=True)[:most])


def ids_of(public_ids: Sequence[str]) -> list[int]:
    """Newest first."""
    found = Job.objects.filter(public_id__in=public_ids).order_by("-created_at", "-id")
    return list(found.values_list("pk", flat=True))


def rows_of(ids: Sequence[int], now: datetime) -> list[JobRow]:
    """Two queries; in the order of `ids`."""
    found = {job.pk: job for job in _complete(Job.objects.filter(pk__in=ids))}
    return [_row(found[pk], now) for pk in ids if pk in found]


def newer_count(first_id: str, wanted: JobFilter, now: datetime) -> int:
    """How many jobs came since the first row, up to one page of them."""
    newer = _after(matching(wanted, now), first_id)
    return len(newer.order_by("created_at", "id").values_list("id")[: wanted.size])


@dataclass(frozen=True)
class Choices:
    models: Sequence[tuple[str, str]]
    customers: Sequence[tuple[str, str]]
    supplies: Sequence[str]


def filter_choices() -> Choices:
    return Choices(
        models=list(PublicModel.objects.order_by("slug").values_list("slug", "slug")),
        customers=list(Customer.objects.order_by("name").values_list("public_id", "name")[:_CHOICES_LIMIT]),
        supplies=list(_in_use().order_by("slug").values_list("slug", flat=True)),
    )


def _in_use() -> QuerySet[Supply]:
    """Retired ones, off and bound nowhere, are found by their address alone."""
    is_off = Q(state=AdminState.DISABLED) | Q(channel__state=AdminState.DISABLED)
    is_bound = Exists(SupplyBinding.objects.filter(supply=OuterRef("pk"), enabled=True))
    return Supply.objects.filter(~is_off | is_bound)


def _complete(jobs: QuerySet[Job]) -> QuerySet[Job]:
    attempts = Attempt.objects.select_related("supply").only(*_TOLD_OF_ATTEMPTS).order_by("number")
    told = jobs.select_related("public_model", "customer").only(*_TOLD)
    return told.prefetch_related(Prefetch("attempts", attempts, to_attr="attempts_in_order"))


def _cut(found: QuerySet[Job], wanted: JobFilter) -> tuple[list[Job], bool]:
    """The page's jobs, newest first, and whether there are more in its direction."""
    if wanted.newer:
        ascending = _complete(_after(found, wanted.newer)).order_by("created_at", "id")
        rows = list(ascending[: wanted.size + 1])
        return rows[: wanted.size][::-1], len(rows) > wanted.size
    if wanted.older:
        found = _before(found, wanted.older)
    rows = list(_complete(found).order_by("-created_at", "-id")[: wanted.size + 1])
    return rows[: wanted.size], len(rows) > wanted.size


def _cursors(jobs: Sequence[Job], more: bool, wanted: JobFilter) -> tuple[str, str]:
    if not jobs:
        return "", ""
    first, last = jobs[0].public_id, jobs[-1].public_id
    if wanted.newer:
        return last, first if more else ""
    return last if more else "", first if wanted.older else ""


def _place(public_id: str) -> tuple[datetime, int] | None:
    return Job.objects.filter(public_id=public_id).values_list("created_at", "id").first()


def _after(jobs: QuerySet[Job], public_id: str) -> QuerySet[Job]:
    place = _place(public_id)
    if place is None:
        return jobs
    created_at, pk = place
    # The first condition alone lets the index be entered at the right place.
    return jobs.filter(Q(created_at__gte=created_at) & (Q(created_at__gt=created_at) | Q(id__gt=pk)))


def _before(jobs: QuerySet[Job], public_id: str) -> QuerySet[Job]:
    place = _place(public_id)
    if place is None:
        return jobs
    created_at, pk = place
    return jobs.filter(Q(created_at__lte=created_at) & (Q(created_at__lt=created_at) | Q(id__lt=pk)))


def _estimate(found: QuerySet[Job], shown: int) -> int | None:
    """The planner's guess: a count would read every matching row. None when it is below what is shown."""
    plan = json.loads(found.explain(format="json"))
    rows = int(plan[0]["Plan"]["Plan Rows"])
    return rows if rows > shown else None


def _row(job: Job, now: datetime) -> JobRow:
    elapsed: timedelta = (job.finished_at or now) - job.created_at
    return JobRow(job, job.attempts_in_order, elapsed.total_seconds())  # type: ignore[attr-defined]


def is_settled(rows: Sequence[JobRow]) -> bool:
    """Whether nothing on the page can change any more."""
    return all(row.job.state in FINAL_JOB_STATES for row in rows)
