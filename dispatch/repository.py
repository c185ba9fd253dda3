"""Guarded changes of rows: a state moves only from where the table lets it, and only at the version seen."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from billing.models import ApiKey
from catalog.models import Channel, DispatchPolicy, Supply
from catalog.rows import all_rows
from catalog.statements import prepared
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
FROM unnest(%(ids)b::bigint[], %(profiles)b::text[], %(dropped)b::jsonb[]) AS started(id, profile, dropped)
WHERE job.id = started.id AND job.state = ANY(%(sources)s)"""


def start_jobs(started: Sequence[tuple[Job, Mapping[str, Any]]], now: datetime) -> None:
    """Moves jobs that the caller has locked to `dispatching`, all by one statement. `started`: with the
    columns that say what will be delivered. Raises RuntimeError where one stands elsewhere than was seen."""
    if not started:
        return
    with prepared() as cursor:
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
    with prepared() as cursor:
        cursor.execute(
            """UPDATE dispatch_job AS job
               SET next_action_at = seen.until, waiting = seen.waiting, line_id = NULL
               FROM unnest(%b::bigint[], %b::jsonb[], %b::timestamptz[]) AS seen(id, waiting, until)
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


_LARGE_OF_JOB = frozenset({"metadata", "model_choice", "first_answer"})
_LARGE_OF_ATTEMPT = frozenset({"compile_plan", "sent_request"})

_JOBS_OF = """
FROM dispatch_job AS job WHERE job.id IN (SELECT job_id FROM dispatch_attempt WHERE id = ANY(%b::bigint[]))
ORDER BY job.id FOR UPDATE"""
_ATTEMPTS = """
FROM dispatch_attempt AS attempt WHERE attempt.id = ANY(%b::bigint[])
ORDER BY attempt.id FOR NO KEY UPDATE"""
# Not joined to the attempts: a statement that waited for a row's lock sees this row anew, and no other's.
_TOLD_OF = "FROM dispatch_providerjob AS told WHERE told.attempt_id = ANY(%b::bigint[])"


def lock_job_of(attempt_id: int) -> Job:
    """The attempt's job, locked: every change of an attempt begins here, so that lock order is one."""
    (job,) = _locked_jobs([attempt_id])
    return job


def locked_attempt(attempt_id: int) -> Attempt:
    """As `locked_attempts`: what its version says now, it says until the transaction ends."""
    return locked_attempts([attempt_id])[attempt_id]


def locked_attempts(ids: Collection[int], to_send: bool = False) -> dict[int, Attempt]:
    """By id, as they stand now, with their jobs: these are locked first, each kind in the order of its ids.

    `to_send`: with all that a submission looks at."""
    by_id = {job.pk: job for job in _locked_jobs(ids)}
    without = frozenset() if to_send else _LARGE_OF_ATTEMPT
    attempts = {
        attempt.pk: attempt for (attempt,) in all_rows(_ATTEMPTS, [list(ids)], without, attempt=Attempt)
    }
    told = {job.attempt_id: job for (job,) in all_rows(_TOLD_OF, [list(ids)], told=ProviderJob)}
    for attempt in attempts.values():
        attempt.job = by_id[attempt.job_id]
        _knows_its_provider_job(attempt, told.get(attempt.pk))
    if to_send:
        _give_what_sending_asks(list(attempts.values()))
    return attempts


def _locked_jobs(attempt_ids: Collection[int]) -> list[Job]:
    return [job for (job,) in all_rows(_JOBS_OF, [list(attempt_ids)], _LARGE_OF_JOB, job=Job)]


def _knows_its_provider_job(attempt: Attempt, told: ProviderJob | None) -> None:
    """Also that there is none."""
    link = Attempt._meta.get_field("provider_job")
    link.set_cached_value(attempt, told)  # type: ignore[union-attr]
    if told is not None:
        told.attempt = attempt


def _give_what_sending_asks(attempts: Sequence[Attempt]) -> None:
    """Many share a key, a supply and a policy: one row of each for all of them. Read behind the locks."""
    keys = ApiKey.objects.select_related("customer").in_bulk({each.job.api_key_id for each in attempts})
    supplies = Supply.objects.in_bulk({each.supply_id for each in attempts})
    channels = Channel.objects.in_bulk({each.channel_id for each in attempts})
    policies = DispatchPolicy.objects.in_bulk({each.policy_id for each in attempts})
    for attempt in attempts:
        attempt.job.api_key = keys[attempt.job.api_key_id]
        attempt.supply, attempt.channel = supplies[attempt.supply_id], channels[attempt.channel_id]
        attempt.policy = policies[attempt.policy_id]


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
