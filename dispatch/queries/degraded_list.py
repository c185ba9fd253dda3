"""Delivered jobs whose result lacks inputs that were asked for."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import QueryDict

from billing.models import CreditEntry
from dispatch.models import Job
from dispatch.queries.cuts import Cursor, Cut, cut
from dispatch.queries.days import Days

NEWEST_COUNTED: Final = 1_000  # jobs that the groups are counted from
_CHUNK: Final = 2_000
# What lists and exports tell: of the documents of a job and its attempt, only what was dropped.
_TOLD: Final = (
    *("public_id", "dropped_inputs", "requested_profile", "actual_profile", "finished_at"),
    *("reserved_micros", "charged_micros", "customer__name", "customer__currency"),
    *("public_model__slug", "adopted_attempt__supply__slug"),
)


@dataclass(frozen=True, slots=True)
class DegradedFilter:
    input: str = ""  # name of a dropped input
    supply: str = ""  # slug

    @property
    def is_empty(self) -> bool:
        return not (self.input or self.supply)


@dataclass(frozen=True)
class DegradedRow:
    """`said` is what the charge says of the result; empty where nothing was charged."""

    job: Job
    supply: str
    rule: str
    said: Mapping[str, object]

    @property
    def saved_micros(self) -> int:
        """How much less than the price of what was asked for."""
        return self.job.reserved_micros - self.job.charged_micros


@dataclass(frozen=True, slots=True)
class Group:
    input: str
    supply: str
    jobs: int
    models: tuple[str, ...]


@dataclass(frozen=True)
class Groups:
    """`is_capped`: only the newest NEWEST_COUNTED jobs of these days are counted."""

    groups: tuple[Group, ...]
    is_capped: bool

    @property
    def inputs(self) -> list[str]:
        return sorted({group.input for group in self.groups})

    @property
    def supplies(self) -> list[str]:
        return sorted({group.supply for group in self.groups})


def parse_filter(query: QueryDict) -> DegradedFilter:
    return DegradedFilter(query.get("input", "")[:40], query.get("supply", "")[:80])


def degraded_jobs(days: Days, wanted: DegradedFilter) -> QuerySet[Job]:
    # As the index of these jobs says it.
    jobs = Job.objects.filter(~Q(dropped_inputs=[]) & Q(state="succeeded"))
    jobs = jobs.filter(finished_at__gte=days.start, finished_at__lt=days.end)
    if wanted.input:
        jobs = jobs.filter(dropped_inputs__contains=[wanted.input])
    return jobs.filter(adopted_attempt__supply__slug=wanted.supply) if wanted.supply else jobs


def degraded_page(days: Days, wanted: DegradedFilter, cursor: Cursor) -> tuple[Cut[Job], list[DegradedRow]]:
    """Two queries: the jobs with all that a row tells of them, and what their charges say."""
    found = cut(with_delivery(degraded_jobs(days, wanted)), cursor)
    return found, rows_of(found.rows)


def with_delivery(jobs: QuerySet[Job]) -> QuerySet[Job]:
    return jobs.select_related("customer", "public_model", "adopted_attempt__supply").only(*_TOLD)


def every_job(days: Days, wanted: DegradedFilter) -> Iterator[Job]:
    """The newest first, read in pieces."""
    yield from with_delivery(degraded_jobs(days, wanted)).order_by("-id").iterator(chunk_size=_CHUNK)


def rows_of(jobs: Iterable[Job]) -> list[DegradedRow]:
    listed = list(jobs)
    charges = CreditEntry.objects.filter(kind="charge", job__in=[job.public_id for job in listed])
    said = dict(charges.values_list("job", "details"))
    return [_row(job, said.get(job.public_id, {})) for job in listed]


def _row(job: Job, said: Mapping[str, object]) -> DegradedRow:
    attempt = job.adopted_attempt
    rule = f"{job.requested_profile or '—'} → {job.actual_profile or '—'}"
    return DegradedRow(job, attempt.supply.slug if attempt else "", rule, said)


def groups_of(days: Days) -> Groups:
    """Input × supply, the largest first: what to mend first."""
    told = degraded_jobs(days, DegradedFilter()).order_by("-finished_at", "-id")
    # As text, and opened once for all that are alike.
    dropped = Cast("dropped_inputs", TextField())
    columns = (dropped, "adopted_attempt__supply__slug", "public_model__slug")
    alike = Counter(told.values_list(*columns)[:NEWEST_COUNTED])
    counted: Counter[tuple[str, str]] = Counter()
    models: dict[tuple[str, str], set[str]] = {}
    for (names, supply, model), jobs in alike.items():
        for name in json.loads(names):
            counted[name, supply] += jobs
            models.setdefault((name, supply), set()).add(model)
    groups = tuple(
        Group(name, supply, jobs, tuple(sorted(models[name, supply])))
        for (name, supply), jobs in sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    )
    return Groups(groups, alike.total() == NEWEST_COUNTED)
