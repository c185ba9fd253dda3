"""Guarded changes of rows: a state moves only from where the table lets it, and only at the version seen."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from dispatch.lifecycle import (
    FINAL_ATTEMPT_STATES,
    FINAL_JOB_STATES,
    AttemptState,
    JobState,
    attempt_sources,
    job_sources,
)
from dispatch.models import Attempt, Job, ProviderEvent, ProviderJob
from dispatch.row_updates import update_each

type AttemptMove = tuple[Attempt, AttemptState, Mapping[str, Any]]  # with the columns it changes
type JobMove = tuple[Job, JobState, Mapping[str, Any]]


def move_attempts(moves: Sequence[AttemptMove], now: datetime) -> set[int]:
    """The ids of the rows that moved. Not in it, a normal answer: somebody moved it first, or the table says
    no. Rows that moved are as stored then."""
    wanted = {
        attempt.pk: (attempt, _arrived(to, to in FINAL_ATTEMPT_STATES, attempt.state_version, changes, now))
        for attempt, to, changes in moves
        if attempt.state in attempt_sources(to)
    }
    return _write(Attempt, wanted)


def move_jobs(moves: Sequence[JobMove], now: datetime) -> set[int]:
    """As `move_attempts`. A move to where the job already stands writes only the changes."""
    wanted: dict[int, tuple[Job, Mapping[str, Any]]] = {}
    for job, to, changes in moves:
        if to != job.state and job.state in job_sources(to):
            ends = {"next_action_at": None, "line_id": None} if to in FINAL_JOB_STATES else {}
            changes = _arrived(to, to in FINAL_JOB_STATES, job.state_version, {**changes, **ends}, now)
        elif to != job.state:
            continue
        if changes:
            wanted[job.pk] = job, changes
    return _write(Job, wanted)


def _arrived(
    to: str, is_final: bool, version: int, changes: Mapping[str, Any], now: datetime
) -> Mapping[str, Any]:
    ended = {"finished_at": now} if is_final else {}
    return {**changes, "state": to, "state_version": version + 1, **ended}


def _write[Row: (Attempt, Job)](
    model: type[Row], wanted: Mapping[int, tuple[Row, Mapping[str, Any]]]
) -> set[int]:
    """Each at the version that it was read at."""
    versions = {pk: row.state_version for pk, (row, _) in wanted.items()}
    written = update_each(model, {pk: values for pk, (_, values) in wanted.items()}, versions)
    for pk in written:
        _take_over(*wanted[pk])
    return written


_START = """
UPDATE dispatch_job AS job
SET state = 'dispatching', state_version = job.state_version + (job.state <> 'dispatching')::int,
    next_action_at = NULL, waiting = NULL, line_id = NULL,
    started_at = coalesce(job.started_at, greatest(job.created_at, %(now)s)),
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
    return bool(claim_attempts([(attempt, next_look_at)]))


def claim_attempts(looks: Iterable[tuple[Attempt, datetime]]) -> set[int]:
    """As `claim_attempt`, each until its next look; the ids of those that are claimed."""
    wanted = {
        attempt.pk: (attempt, {"next_look_at": at, "state_version": attempt.state_version + 1})
        for attempt, at in looks
    }
    return _write(Attempt, wanted)


def keep_found_late(attempt: Attempt, provider_job_id: str, next_look_at: datetime | None) -> bool:
    """The provider's job of an attempt that was given up, for the looks that cost it. False where it was not
    given up, or the job is another attempt's."""
    given_up = Attempt.objects.filter(pk=attempt.pk, state=AttemptState.ABANDONED)
    told = given_up.values_list("recovery", flat=True).first()
    owned = ProviderJob.objects.filter(channel=attempt.channel_id, provider_job_id=provider_job_id)
    if told is None or owned.exists():
        return False
    found = {**told, "found_late": provider_job_id}
    return bool(given_up.update(recovery=found, next_look_at=next_look_at))


_LARGE_OF_JOB = ("metadata", "model_choice", "first_answer")
_LARGE_OF_ATTEMPT = ("compile_plan", "sent_request")


def lock_job_of(attempt_id: int) -> Job:
    """The attempt's job, locked: every change of an attempt begins here, so that lock order is one."""
    return _locked_jobs([attempt_id]).get()


def locked_attempts(ids: Collection[int], to_send: bool = False) -> dict[int, Attempt]:
    """By id, as they stand now, with their jobs: these are locked first, each kind in the order of its ids.

    `to_send`: with all that a submission looks at."""
    jobs, attempts = _locked_jobs(ids), Attempt.objects.select_for_update(of=("self",), no_key=True)
    if to_send:
        jobs = jobs.select_related("api_key__customer")
        attempts = attempts.select_related("supply", "channel", "policy")
    else:
        attempts = attempts.select_related("provider_job").defer(*_LARGE_OF_ATTEMPT)
    by_id = {job.pk: job for job in jobs}
    found = {attempt.pk: attempt for attempt in attempts.filter(pk__in=ids).order_by("pk")}
    for attempt in found.values():
        attempt.job = by_id[attempt.job_id]
    return found


def _locked_jobs(attempt_ids: Collection[int]) -> QuerySet[Job]:
    jobs = Job.objects.select_for_update(of=("self",)).defer(*_LARGE_OF_JOB)
    return jobs.filter(pk__in=Attempt.objects.filter(pk__in=attempt_ids).values("job")).order_by("pk")


def keep_event(
    attempt: Attempt, kind: ProviderEvent.Kind, outcome: str, raw: dict[str, Any], now: datetime
) -> None:
    """Appends what the provider said, or what became of a look at it."""
    event_of(attempt, kind, outcome, raw, now).save(force_insert=True)


def event_of(
    attempt: Attempt, kind: ProviderEvent.Kind, outcome: str, raw: dict[str, Any], now: datetime
) -> ProviderEvent:
    """As `keep_event`, for the caller to store."""
    return ProviderEvent(
        attempt_id=attempt.pk, channel_id=attempt.channel_id, kind=kind, outcome=outcome, raw=raw, at=now
    )


def _take_over(row: Attempt | Job, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
