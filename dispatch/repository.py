"""Guarded changes of rows: a state moves only from where the table lets it, and only at the version seen."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

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
        values |= {"finished_at": now, "next_action_at": None, "line_id": None}
    moved = Job.objects.filter(pk=job.pk, state_version=job.state_version, state__in=job_sources(to)).update(
        **values
    )
    if moved:
        _take_over(job, values)
    return bool(moved)


_START = """
UPDATE dispatch_job AS job
SET state = 'dispatching', state_version = job.state_version + (job.state <> 'dispatching')::int,
    next_action_at = NULL, waiting = NULL, line_id = NULL, started_at = coalesce(job.started_at, %(now)s),
    actual_profile = started.profile, dropped_inputs = started.dropped
FROM unnest(%(ids)s::bigint[], %(profiles)s::text[], %(dropped)s::jsonb[]) AS started(id, profile, dropped)
WHERE job.id = started.id AND job.state = ANY(%(sources)s)"""


def start_jobs(started: Sequence[tuple[Job, Mapping[str, Any]]], now: datetime) -> None:
    """Moves jobs that the caller has locked to `dispatching`, all by one statement. `started`: with the
    columns that say what will be delivered. Raises RuntimeError where one stands elsewhere than was seen."""
    if not started:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _START,
            {
                "now": now,
                "ids": [job.pk for job, _ in started],
                "profiles": [columns["actual_profile"] for _, columns in started],
                "dropped": [json.dumps(columns["dropped_inputs"]) for _, columns in started],
                "sources": sorted(job_sources(JobState.DISPATCHING) | {JobState.DISPATCHING}),
            },
        )
        if cursor.rowcount != len(started):
            raise RuntimeError(f"{cursor.rowcount} of {len(started)} locked jobs were started")


def look_again(waits: Sequence[tuple[Job, Mapping[str, Any], datetime]]) -> None:
    """When the scan looks at each of these jobs by itself, and what it saw; they are in no line then."""
    if not waits:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE dispatch_job AS job
               SET next_action_at = seen.until, waiting = seen.waiting, line_id = NULL
               FROM unnest(%s::bigint[], %s::jsonb[], %s::timestamptz[]) AS seen(id, waiting, until)
               WHERE job.id = seen.id""",
            [
                [job.pk for job, _, _ in waits],
                [json.dumps(waiting) for _, waiting, _ in waits],
                [until for _, _, until in waits],
            ],
        )


def claim_attempt(attempt: Attempt, next_look_at: datetime) -> bool:
    """Claims work that does not change the state (a poll, a fetch, a look-up), by version."""
    values = {"next_look_at": next_look_at, "state_version": attempt.state_version + 1}
    claimed = Attempt.objects.filter(pk=attempt.pk, state_version=attempt.state_version).update(**values)
    if claimed:
        _take_over(attempt, values)
    return bool(claimed)


# Of a job and an attempt, what is large and seldom asked for: read when it is.
_LARGE_OF_JOB = ("request", "metadata", "model_choice", "first_answer")
LARGE_OF_ATTEMPT = ("compile_plan", "sent_request")


def lock_job_of(attempt_id: int) -> Job:
    """The attempt's job, locked: every change of an attempt begins here, so that lock order is one."""
    jobs = Job.objects.select_for_update(of=("self",)).defer(*_LARGE_OF_JOB)
    return jobs.get(attempts=attempt_id)


def attempt_of(job: Job, attempt_id: int) -> Attempt:
    """As it stands now, of a job that the caller has locked."""
    attempt = Attempt.objects.defer(*LARGE_OF_ATTEMPT).get(pk=attempt_id)
    attempt.job = job
    return attempt


def keep_event(
    attempt: Attempt, kind: ProviderEvent.Kind, outcome: str, raw: dict[str, Any], now: datetime
) -> None:
    """Appends what the provider said, or what became of a look at it."""
    ProviderEvent.objects.create(
        attempt=attempt, channel_id=attempt.channel_id, kind=kind, outcome=outcome, raw=raw, at=now
    )


def _take_over(row: Attempt | Job, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
