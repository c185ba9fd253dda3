"""Everything one job's page tells: a fixed number of queries, whatever happened to the job."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch, Q

from billing.models import CreditEntry, ProviderUsageEntry
from catalog.models import AuditEntry
from dispatch.lifecycle import AttemptState
from dispatch.models import Asset, Attempt, Job, ProviderEvent, ProviderJob, SelectionRound
from dispatch.queries.health_log import listed
from dispatch.queries.timeline import AttemptTimes
from health.circuit import Subject
from health.models import HealthEvent

EVENTS_SHOWN = 200
CHANGES_SHOWN = 50
_FAILURES = ("rejected", "unknown", "fail", "cannottell", "not_found", "error", "expired", "lost")


@dataclass(frozen=True)
class JobStory:
    job: Job
    attempts: Sequence[Attempt]
    rounds: Sequence[SelectionRound]
    events: Sequence[ProviderEvent]  # oldest first, at most EVENTS_SHOWN
    outputs: Sequence[Asset]
    usage: Sequence[ProviderUsageEntry]  # what the providers charge us
    credit: Sequence[CreditEntry]  # what the customer pays
    last_change: AuditEntry | None
    cancelled: AuditEntry | None  # by an operator
    changes: Sequence[HealthEvent]  # of its supplies and channels while it went on, oldest first

    @property
    def latest(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def adopted(self) -> Attempt | None:
        return next((each for each in self.attempts if each.pk == self.job.adopted_attempt_id), None)

    @property
    def more_events(self) -> bool:
        return len(self.events) == EVENTS_SHOWN


def find_job(public_id: str) -> Job | None:
    return (
        Job.objects.select_related("public_model__policy", "customer", "api_key")
        .filter(public_id=public_id)
        .first()
    )


def job_story(job: Job) -> JobStory:
    """Nine queries besides the job's own."""
    attempts = list(
        job.attempts.select_related(
            "supply", "channel", "capability_version", "cost_rule_version", "policy", "selection_round"
        )
        .prefetch_related(Prefetch("provider_job", ProviderJob.objects.all()))
        .order_by("number")
    )
    ids = [attempt.public_id for attempt in attempts]
    events = ProviderEvent.objects.filter(attempt__in=attempts).select_related("attempt", "channel")
    changes = AuditEntry.objects.filter(subject=f"job:{job.public_id}").order_by("-at")
    outputs = Asset.objects.filter(attempt__in=attempts, kind=Asset.Kind.OUTPUT)
    return JobStory(
        job=job,
        attempts=attempts,
        rounds=list(job.rounds.order_by("number")),
        events=list(events.order_by("id")[:EVENTS_SHOWN]),
        outputs=list(outputs.order_by("attempt_id", "number")),
        usage=list(ProviderUsageEntry.objects.of_attempts(ids).select_related("supply").order_by("id")),
        credit=list(CreditEntry.objects.of_job(job.public_id).order_by("id")),
        last_change=changes.first(),
        changes=_health_changes(job, attempts),
        cancelled=changes.filter(action="cancel job").first() if job.cancel_requested_at else None,
    )


def _health_changes(job: Job, attempts: Sequence[Attempt]) -> Sequence[HealthEvent]:
    if not attempts:
        return []
    channels, supplies = {each.channel_id for each in attempts}, {each.supply_id for each in attempts}
    there = Q(subject=Subject.CHANNEL, subject_id__in=channels)
    there |= Q(subject=Subject.SUPPLY, subject_id__in=supplies)
    since = listed(HealthEvent.objects.filter(there, at__gte=job.created_at))
    found = since.filter(at__lte=job.finished_at) if job.finished_at else since
    return list(found.order_by("-id")[:CHANGES_SHOWN])[::-1]


def is_failure(event: ProviderEvent) -> bool:
    """Whether it tells of what went wrong: refused, lost, or ended without a result."""
    return any(word in event.outcome for word in _FAILURES)


def attempt_times(story: JobStory, now: datetime) -> list[AttemptTimes]:
    """The attempts' times for the waterfall; when a submission became uncertain, its events say."""
    waiting_from, times = story.job.created_at, []
    for attempt in story.attempts:
        times.append(_times(attempt, waiting_from, story, now))
        waiting_from = attempt.finished_at or waiting_from
    return times


def _times(attempt: Attempt, waiting_from: datetime, story: JobStory, now: datetime) -> AttemptTimes:
    places = {(Subject.CHANNEL, attempt.channel_id), (Subject.SUPPLY, attempt.supply_id)}
    unknown = (
        e.at
        for e in story.events
        if e.attempt_id == attempt.pk and (e.kind, e.outcome) == ("submit", "unknown")
    )
    lost = attempt.state == AttemptState.OUTCOME_UNCERTAIN
    return AttemptTimes(
        number=attempt.number,
        supply=attempt.supply.slug,
        state=attempt.state,
        waiting_from=waiting_from,
        created_at=attempt.created_at,
        request_started_at=attempt.request_started_at,
        uncertain_at=next(unknown, None),
        accepted_at=attempt.accepted_at,
        lost_at=min(attempt.execution_deadline_at or now, now) if lost else None,
        generated_at=attempt.generated_at,
        ended_at=attempt.finished_at,
        changes=tuple(each.at for each in story.changes if (each.subject, each.subject_id) in places),
    )


def find_round(job: Job, number: int) -> SelectionRound | None:
    return job.rounds.filter(number=number).select_related("job").first()


def round_numbers(job: Job) -> list[int]:
    return list(job.rounds.order_by("number").values_list("number", flat=True))
