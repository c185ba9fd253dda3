"""Guarded changes of rows: a state moves only from where the table lets it, and only at the version seen."""

from datetime import datetime
from typing import Any

from dispatch.lifecycle import (
    FINAL_ATTEMPT_STATES,
    FINAL_JOB_STATES,
    AttemptState,
    JobState,
    attempt_sources,
    job_sources,
)
from dispatch.models import Attempt, Job, ProviderEvent


def move_attempt(attempt: Attempt, to: AttemptState, now: datetime, changes: dict[str, Any]) -> bool:
    """True when the row moved. False, a normal answer: somebody moved it first, or the table says no."""
    values = {**changes, "state": to, "state_version": attempt.state_version + 1}
    if to in FINAL_ATTEMPT_STATES:
        values["finished_at"] = now
    moved = Attempt.objects.filter(
        pk=attempt.pk, state_version=attempt.state_version, state__in=attempt_sources(to)
    ).update(**values)
    if moved:
        _take_over(attempt, values)
    return bool(moved)


def move_job(job: Job, to: JobState, now: datetime, changes: dict[str, Any]) -> bool:
    """As `move_attempt`. A move to where the job already stands writes only the changes."""
    if to == job.state:
        if changes:
            Job.objects.filter(pk=job.pk).update(**changes)
            _take_over(job, changes)
        return True
    values = {**changes, "state": to, "state_version": job.state_version + 1}
    if to in FINAL_JOB_STATES:
        values |= {"finished_at": now, "next_action_at": None}
    moved = Job.objects.filter(pk=job.pk, state_version=job.state_version, state__in=job_sources(to)).update(
        **values
    )
    if moved:
        _take_over(job, values)
    return bool(moved)


def claim_attempt(attempt: Attempt, next_look_at: datetime) -> bool:
    """Claims work that does not change the state (a poll, a fetch, a look-up), by version."""
    values = {"next_look_at": next_look_at, "state_version": attempt.state_version + 1}
    claimed = Attempt.objects.filter(pk=attempt.pk, state_version=attempt.state_version).update(**values)
    if claimed:
        _take_over(attempt, values)
    return bool(claimed)


def lock_job_of(attempt_id: int) -> Job:
    """The attempt's job, locked: every change of an attempt begins here, so that lock order is one."""
    return (
        Job.objects.select_for_update(of=("self",))
        .select_related("customer", "api_key", "public_model__policy")
        .get(attempts=attempt_id)
    )


def keep_event(
    attempt: Attempt, kind: ProviderEvent.Kind, outcome: str, raw: dict[str, Any], now: datetime
) -> None:
    """Appends what the provider said, or what became of a look at it."""
    ProviderEvent.objects.create(
        attempt=attempt, channel=attempt.channel, kind=kind, outcome=outcome, raw=raw, at=now
    )


def _take_over(row: Attempt | Job, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
