"""The desk of attempts whose outcome nobody knows: which they are, who is on them, and what was found out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import QuerySet

from catalog.models import AuditEntry
from dispatch.decisions import Case, Decision, Effect, effect_of
from dispatch.lifecycle import UNKNOWN_STATES, AttemptState, JobState
from dispatch.models import Attempt, CapacityLease, DeskClaim, GivingUp, ProviderEvent, ProviderJob
from dispatch.queries.counting import capped

SHOWN: Final = 200
EVENTS_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Line:
    """`is_open`: the outcome is still unknown. `since`: when it became so, as far as is known."""

    attempt: Attempt
    claim: DeskClaim | None
    giving_up: GivingUp | None

    @property
    def is_open(self) -> bool:
        return self.attempt.state in UNKNOWN_STATES

    @property
    def since(self) -> datetime:
        return self.attempt.request_started_at or self.attempt.created_at


@dataclass(frozen=True)
class Desk:
    """Oldest first, at most SHOWN. `at_risk`: what the quotes add up to, micros by currency."""

    lines: Sequence[Line]
    at_risk: Sequence[tuple[str, int]]
    last_decision: AuditEntry | None  # where nothing is open


def uncertain_count() -> int:
    """Capped; asked on every page."""
    return capped(_open())


def desk(now: datetime) -> Desk:
    lines = _lines(_open().order_by("created_at", "id")[:SHOWN], now)
    at_risk: dict[str, int] = {}
    for line in lines:
        currency = line.attempt.quote_currency
        at_risk[currency] = at_risk.get(currency, 0) + line.attempt.quote_micros
    decided = AuditEntry.objects.filter(action="decide submission").order_by("-at", "-id")
    return Desk(lines, sorted(at_risk.items()), None if lines else decided[:1].first())


def lines_again(ids: Sequence[str], now: datetime) -> list[Line]:
    """Those on the screen in their order, decided ones too; and `newer_count` says how many came since."""
    lines = {line.attempt.public_id: line for line in _lines(_rows().filter(public_id__in=ids), now)}
    return [lines[each] for each in ids if each in lines]


def newer_count(ids: Sequence[str]) -> int:
    return capped(_open().exclude(public_id__in=ids))


def _open() -> QuerySet[Attempt]:
    """By the index of what is to be looked at; of these something is always to come."""
    return _rows().filter(state__in=sorted(UNKNOWN_STATES), next_look_at__isnull=False)


def _rows() -> QuerySet[Attempt]:
    return Attempt.objects.select_related("supply", "channel", "job__customer", "job__public_model")


def _lines(attempts: QuerySet[Attempt], now: datetime) -> list[Line]:
    found = list(attempts)
    claims = {each.attempt_id: each for each in DeskClaim.objects.filter(attempt__in=found, until_at__gt=now)}
    proposals = {each.attempt_id: each for each in GivingUp.objects.filter(attempt__in=found)}
    return [Line(each, claims.get(each.pk), proposals.get(each.pk)) for each in found]


@dataclass(frozen=True)
class Story:
    """One attempt on the desk."""

    line: Line
    events: Sequence[ProviderEvent]  # newest first, at most EVENTS_SHOWN
    lease: CapacityLease | None
    provider_job: ProviderJob | None
    effects: Sequence[Effect]  # of the decisions that can be made
    decision: AuditEntry | None  # the one that was made by a person
    of_others: Mapping[int, ProviderJob]  # by event: the task that it names, where it is another attempt's

    @property
    def attempt(self) -> Attempt:
        return self.line.attempt

    @property
    def can_be_decided(self) -> bool:
        return self.attempt.state == AttemptState.SUBMISSION_UNCERTAIN

    @property
    def tries(self) -> int:
        return int(self.attempt.recovery.get("tries", 0))


def find_attempt(public_id: str) -> Attempt | None:
    rows = _rows().select_related("supply__channel", "job__public_model__policy", "policy")
    return rows.filter(public_id=public_id).first()


def story_of(attempt: Attempt, now: datetime) -> Story:
    """Eight queries."""
    claim = DeskClaim.objects.filter(attempt=attempt, until_at__gt=now).first()
    line = Line(attempt, claim, GivingUp.objects.filter(attempt=attempt).first())
    decisions = AuditEntry.objects.filter(
        subject=f"attempt:{attempt.public_id}", action="decide submission"
    ).order_by("-at")
    events = list(attempt.events.order_by("-at", "-id")[:EVENTS_SHOWN])
    return Story(
        line=line,
        events=events,
        lease=CapacityLease.objects.filter(attempt=attempt).order_by("-id").first(),
        provider_job=ProviderJob.objects.filter(attempt=attempt).first(),
        effects=effects_of(attempt, now) if attempt.state == AttemptState.SUBMISSION_UNCERTAIN else (),
        decision=decisions.first(),
        of_others=_tasks_of_others(attempt, events),
    )


def _tasks_of_others(attempt: Attempt, events: Sequence[ProviderEvent]) -> dict[int, ProviderJob]:
    named = {event.pk: event.raw["provider_job_id"] for event in events if "provider_job_id" in event.raw}
    owned = ProviderJob.objects.filter(channel=attempt.channel, provider_job_id__in=set(named.values()))
    others = {
        each.provider_job_id: each for each in owned.exclude(attempt=attempt).select_related("attempt__job")
    }
    return {event: others[task] for event, task in named.items() if task in others}


def effects_of(attempt: Attempt, now: datetime) -> list[Effect]:
    job, policy = attempt.job, attempt.policy.parsed
    earlier = job.attempts.filter(number__lt=attempt.number).order_by("number")
    case = Case(
        job=JobState(job.state),
        earlier=tuple(AttemptState(state) for state in earlier.values_list("state", flat=True)),
        number=attempt.number,
        max_attempts=job.public_model.policy.parsed.max_attempts,
        dispatch_deadline_at=job.dispatch_deadline_at,
        strict_model=job.request.get("routing_mode") == "strict_model",
        cancel_requested=job.cancel_requested_at is not None,
        quarantine_until=max(now, attempt.execution_deadline_at or now)
        + timedelta(seconds=policy.quarantine_s),
    )
    return [effect_of(decision, case, now) for decision in Decision]
