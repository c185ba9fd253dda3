"""The list of jobs: filtered, newest first, cut by a cursor that is the id of a row."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Prefetch, Q, QuerySet
from django.http import QueryDict

from billing.models import Customer
from catalog.models import Modality, PublicModel
from dispatch.lifecycle import FINAL_JOB_STATES, JobState
from dispatch.models import Attempt, Job

PAGE_SIZES = (50, 100, 200)
_CHOICES_LIMIT = 200  # of customers in the filter; more are found by their id


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What the address asks for; values that don't exist are dropped."""

    states: tuple[str, ...] = ()
    model: str = ""  # slug
    modality: str = ""
    customer: str = ""  # public id
    older: str = ""  # public id of the job before whose row the page begins
    newer: str = ""
    size: int = PAGE_SIZES[0]

    @property
    def is_empty(self) -> bool:
        return not (self.states or self.model or self.modality or self.customer)

    def matches(self, job: Job) -> bool:
        """Whether a row on the screen still belongs there."""
        return (
            (not self.states or job.state in self.states)
            and self.model in ("", job.public_model.slug)
            and self.modality in ("", job.modality)
            and self.customer in ("", job.customer.public_id)
        )


def parse_filter(query: QueryDict) -> JobFilter:
    size = query.get("size", "")
    modality = query.get("modality", "")
    return JobFilter(
        states=tuple(state for state in query.getlist("state") if state in set(JobState)),
        model=query.get("model", "")[:80],
        modality=modality if modality in Modality.values else "",
        customer=query.get("customer", "")[:40],
        older=query.get("older", "")[:40],
        newer=query.get("newer", "")[:40],
        size=int(size) if size in map(str, PAGE_SIZES) else PAGE_SIZES[0],
    )


@dataclass(frozen=True)
class JobRow:
    """One line of the list, with what its latest attempt says."""

    job: Job
    attempts: Sequence[Attempt]
    seconds: float  # from creation to the end, or to now
    still_matches: bool = True

    @property
    def latest(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None


@dataclass(frozen=True)
class JobPage:
    rows: Sequence[JobRow]
    older: str  # cursor of the next page, or ""
    newer: str
    about: int | None  # the planner's estimate of all that match; None where it knows no more than the page


def job_page(wanted: JobFilter, now: datetime) -> JobPage:
    """At most `wanted.size` rows. Four queries: cursor, jobs, attempts, estimate."""
    matching = _matching(wanted)
    jobs, more = _cut(matching, wanted)
    older, newer = _cursors(jobs, more, wanted)
    about = _estimate(matching, len(jobs)) if older or newer else None
    return JobPage([_row(job, now) for job in jobs], older, newer, about)


def rows_again(ids: Sequence[str], wanted: JobFilter, now: datetime) -> list[JobRow]:
    """The rows that are on a screen, in its order, as they are now; one that no longer matches stays."""
    found = {job.public_id: job for job in _complete(Job.objects.filter(public_id__in=ids))}
    rows = [_row(found[public_id], now) for public_id in ids if public_id in found]
    return [replace(row, still_matches=wanted.matches(row.job)) for row in rows]


def newer_count(first_id: str, wanted: JobFilter) -> int:
    """How many jobs came since the first row, up to one page of them."""
    matching = _after(_matching(wanted), first_id)
    return len(matching.order_by("created_at", "id").values_list("id")[: wanted.size])


@dataclass(frozen=True)
class Choices:
    models: Sequence[tuple[str, str]]
    customers: Sequence[tuple[str, str]]


def filter_choices() -> Choices:
    return Choices(
        models=list(PublicModel.objects.order_by("slug").values_list("slug", "slug")),
        customers=list(Customer.objects.order_by("name").values_list("public_id", "name")[:_CHOICES_LIMIT]),
    )


def _matching(wanted: JobFilter) -> QuerySet[Job]:
    conditions: Mapping[str, object] = {
        "state__in": wanted.states,
        "public_model__slug": wanted.model,
        "modality": wanted.modality,
        "customer__public_id": wanted.customer,
    }
    return Job.objects.filter(**{name: value for name, value in conditions.items() if value})


def _complete(jobs: QuerySet[Job]) -> QuerySet[Job]:
    attempts = Attempt.objects.select_related("supply").order_by("number")
    return jobs.select_related("public_model", "customer").prefetch_related(
        Prefetch("attempts", attempts, to_attr="attempts_in_order")
    )


def _cut(matching: QuerySet[Job], wanted: JobFilter) -> tuple[list[Job], bool]:
    """The page's jobs, newest first, and whether there are more in its direction."""
    if wanted.newer:
        ascending = _complete(_after(matching, wanted.newer)).order_by("created_at", "id")
        found = list(ascending[: wanted.size + 1])
        return found[: wanted.size][::-1], len(found) > wanted.size
    if wanted.older:
        matching = _before(matching, wanted.older)
    found = list(_complete(matching).order_by("-created_at", "-id")[: wanted.size + 1])
    return found[: wanted.size], len(found) > wanted.size


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


def _estimate(matching: QuerySet[Job], shown: int) -> int | None:
    """The planner's guess: a count would read every matching row. None when it is below what is shown."""
    plan = json.loads(matching.explain(format="json"))
    rows = int(plan[0]["Plan"]["Plan Rows"])
    return rows if rows > shown else None


def _row(job: Job, now: datetime) -> JobRow:
    elapsed: timedelta = (job.finished_at or now) - job.created_at
    return JobRow(job, job.attempts_in_order, elapsed.total_seconds())  # type: ignore[attr-defined]


def is_settled(rows: Sequence[JobRow]) -> bool:
    """Whether nothing on the page can change any more."""
    return all(row.job.state in FINAL_JOB_STATES for row in rows)
