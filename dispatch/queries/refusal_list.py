"""What providers refused on content grounds, and whom it stops or has stopped."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q, QuerySet
from django.http import QueryDict

from catalog.models import Supply
from dispatch.models import Attempt, Job
from dispatch.queries.counting import COUNTED_UP_TO
from dispatch.queries.cuts import Cursor, Cut, cut
from health.memory import record_of
from health.models import FROZEN, RefusalRecord
from health.refusals import FROZEN_AT_REFUSALS, RefusalState, standing

ENDED: Final = "ended"
STATES: Final = (RefusalState.COOLDOWN.value, RefusalState.FROZEN.value, ENDED)
_JOBS_SHOWN: Final = 20
_REFUSED: Final = "content_refused"
# As the index of these jobs says it.
_STOPPED: Final = Q(line__isnull=False) | Q(error_code=_REFUSED)


@dataclass(frozen=True, slots=True)
class RefusalFilter:
    """Without states: those that hold, in cooldown or frozen."""

    states: tuple[str, ...] = ()
    provider: str = ""


@dataclass(frozen=True, slots=True)
class RefusalLine:
    """All that the list shows of a record: lines that are equal look alike."""

    public_id: str
    state: str
    due_at: datetime | None
    provider: str
    family: str
    supply: str  # slug, where it is of one alone
    refusals: int | None
    frozen_at: int  # refusals
    refused_at: datetime | None
    waiting: int
    refused: int
    job: str


@dataclass(frozen=True)
class RefusalRow:
    """`due_at`: the earliest next try of a record in cooldown. Counts stop at COUNTED_UP_TO a page."""

    record: RefusalRecord
    state: str
    due_at: datetime | None
    waiting: int
    refused: int
    job: str  # public id: of the last one that was refused, or ""

    @property
    def line(self) -> RefusalLine:
        record = self.record
        return RefusalLine(
            public_id=record.public_id,
            state=self.state,
            due_at=self.due_at,
            provider=record.provider,
            family=record.model_family,
            supply=record.supply.slug if record.supply else "",
            refusals=record.refusals,
            frozen_at=FROZEN_AT_REFUSALS,
            refused_at=record.refused_at,
            waiting=self.waiting,
            refused=self.refused,
            job=self.job,
        )


def parse_filter(query: QueryDict) -> RefusalFilter:
    return RefusalFilter(
        states=tuple(state for state in STATES if state in query.getlist("state")),
        provider=query.get("provider", "")[:40],
    )


def matching(wanted: RefusalFilter) -> QuerySet[RefusalRecord]:
    records = RefusalRecord.objects.select_related("supply")
    if wanted.provider:
        records = records.filter(provider=wanted.provider)
    if not wanted.states:
        return records.filter(ended_at=None)
    said = Q()
    if ENDED in wanted.states:
        said |= Q(ended_at__isnull=False)
    if RefusalState.FROZEN in wanted.states:
        said |= Q(ended_at=None) & FROZEN
    if RefusalState.COOLDOWN in wanted.states:
        said |= Q(ended_at=None) & ~FROZEN
    return records.filter(said)


def refusal_page(
    wanted: RefusalFilter, cursor: Cursor, now: datetime
) -> tuple[Cut[RefusalRecord], list[RefusalRow]]:
    """Three queries: records, their last attempts, the jobs that they stop."""
    found = cut(matching(wanted), cursor)
    return found, rows_of(found.rows, now)


def rows_again(ids: Collection[str], now: datetime) -> list[RefusalRow]:
    """Those on the screen, in its order."""
    records = RefusalRecord.objects.select_related("supply").filter(public_id__in=ids)
    found = {record.public_id: record for record in records}
    return rows_of([found[each] for each in ids if each in found], now)


def rows_of(records: Sequence[RefusalRecord], now: datetime) -> list[RefusalRow]:
    jobs = dict(
        Attempt.objects.filter(public_id__in=[record.last_refused_attempt for record in records]).values_list(
            "public_id", "job__public_id"
        )
    )
    stopped = _stopped({record.fingerprint for record in records})
    return [_row(record, jobs, stopped, now) for record in records]


def _row(
    record: RefusalRecord, jobs: dict[str, str], stopped: Counter[tuple[str, bool]], now: datetime
) -> RefusalRow:
    holds = standing(record_of(record), now)
    return RefusalRow(
        record=record,
        state=ENDED if record.ended_at else holds.state.value,
        due_at=None if record.ended_at else holds.next_probe_at,
        waiting=stopped[record.fingerprint, False],
        refused=stopped[record.fingerprint, True],
        job=jobs.get(record.last_refused_attempt, ""),
    )


def _stopped(fingerprints: Collection[str]) -> Counter[tuple[str, bool]]:
    """By fingerprint, and whether they ended refused; up to COUNTED_UP_TO jobs."""
    jobs = Job.objects.filter(_STOPPED, content_fingerprint__in=fingerprints)
    told = jobs.values_list("content_fingerprint", "error_code")[:COUNTED_UP_TO]
    return Counter((fingerprint, code == _REFUSED) for fingerprint, code in told)


def jobs_of(record: RefusalRecord) -> list[Job]:
    """The newest jobs with this content that wait, or that ended refused."""
    jobs = Job.objects.filter(_STOPPED, content_fingerprint=record.fingerprint)
    return list(jobs.select_related("public_model", "customer").order_by("-id")[:_JOBS_SHOWN])


def supplies_of(record: RefusalRecord) -> list[Supply]:
    """For which the record holds, unless they crossed a boundary since."""
    ids = [record.supply_id] if record.supply_id else [int(each) for each in record.versions]
    return list(Supply.objects.filter(pk__in=ids).select_related("channel").order_by("slug"))


def providers() -> list[str]:
    """Of records that hold."""
    live = RefusalRecord.objects.filter(ended_at=None)
    return list(live.order_by("provider").values_list("provider", flat=True).distinct())


def refused_job(record: RefusalRecord) -> Job | None:
    """Whose content the last refusal was about."""
    attempts = Attempt.objects.filter(public_id=record.last_refused_attempt).select_related("job")
    found = attempts.first()
    return found.job if found else None


def last_ended() -> RefusalRecord | None:
    return RefusalRecord.objects.filter(ended_at__isnull=False).order_by("-ended_at").first()
