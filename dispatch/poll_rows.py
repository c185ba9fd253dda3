"""Polls in batches: which attempts are due, claimed in one statement, and those that said nothing new,
written in one."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from catalog.retrying import retried_as_victim
from catalog.statements import prepared
from dispatch.capacity import LEASE_TTL
from dispatch.lifecycle import AT_PROVIDER_STATES
from dispatch.models import ProviderJob
from dispatch.row_updates import update_each

_STATES = ", ".join(f"'{state}'" for state in sorted(AT_PROVIDER_STATES))  # as the index attempt_to_poll says

_CHANNELS_DUE = f"""
SELECT channel.id FROM catalog_channel channel CROSS JOIN LATERAL (
    SELECT next_look_at FROM dispatch_attempt
    WHERE channel_id = channel.id AND state IN ({_STATES}) AND next_look_at <= %(now)s
    ORDER BY next_look_at LIMIT 1) oldest
ORDER BY oldest.next_look_at
"""  # noqa: S608 - our own state names

_CLAIM = f"""
WITH due AS (
    SELECT found.id FROM unnest(%(channels)s::bigint[], %(rooms)s::int[]) AS wanted(channel, room)
    CROSS JOIN LATERAL (
        SELECT id FROM dispatch_attempt
        WHERE channel_id = wanted.channel AND state IN ({_STATES}) AND next_look_at <= %(now)s
        ORDER BY next_look_at, id LIMIT wanted.room FOR UPDATE SKIP LOCKED) found)
UPDATE dispatch_attempt attempt SET next_look_at = %(until)s, state_version = state_version + 1
FROM due JOIN dispatch_providerjob job ON job.attempt_id = due.id WHERE attempt.id = due.id
RETURNING attempt.id, attempt.public_id, attempt.channel_id, attempt.supply_id, attempt.state,
          attempt.state_version, attempt.created_at, attempt.execution_deadline_at,
          job.provider_job_id, job.raw_status, job.status, job.quiet_polls
"""  # noqa: S608

# One row after the other, attempt before lease: the order of everybody.
_NOTHING_NEW = """
WITH look AS (
    SELECT * FROM unnest(%(attempts)b::bigint[], %(versions)b::int[], %(ats)b::timestamptz[],
                         %(progress)b::float8[]) AS look(id, version, at, progress)),
looked AS (
    UPDATE dispatch_attempt attempt SET next_look_at = look.at, state_version = state_version + 1
    FROM look WHERE attempt.id = look.id AND attempt.state_version = look.version
    RETURNING attempt.id, look.at, look.progress,
              CASE WHEN attempt.state <> 'outcome_uncertain'
                   THEN attempt.execution_deadline_at END AS deadline),
told AS (
    UPDATE dispatch_providerjob job
    SET polls = polls + 1, quiet_polls = quiet_polls + 1, failed_polls_in_a_row = 0, not_found_in_a_row = 0,
        polled_at = %(now)s, progress = coalesce(looked.progress, job.progress)
    FROM looked WHERE job.attempt_id = looked.id)
UPDATE dispatch_capacitylease lease
SET renewed_at = %(now)s, expires_at = least(looked.at + make_interval(secs => %(ttl_s)s),
                                             CASE WHEN looked.deadline > %(now)s THEN looked.deadline END)
FROM looked WHERE lease.attempt_id = looked.id AND lease.released_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """An attempt as it was claimed for a poll, and what its provider said last."""

    pk: int
    public_id: str
    channel_id: int
    supply_id: int
    state: str
    state_version: int
    created_at: datetime
    execution_deadline_at: datetime | None
    provider_job_id: str
    raw_status: str
    status: str
    quiet_polls: int


@dataclass(frozen=True, slots=True)
class Look:
    """A poll that said nothing new, and when to look again."""

    attempt: Claimed
    again_at: datetime
    progress: float | None


def channels_due(now: datetime) -> list[int]:
    """The channels with an attempt to poll, the longest due first."""
    with connection.cursor() as cursor:
        cursor.execute(_CHANNELS_DUE, {"now": now})
        return [channel for (channel,) in cursor.fetchall()]


def claim_due(room: Mapping[int, int], until: datetime, now: datetime) -> list[Claimed]:
    """At most `room` attempts of each channel, nobody else's until `until`."""
    channels = list(room)
    with connection.cursor() as cursor:
        rooms = [room[channel] for channel in channels]
        cursor.execute(_CLAIM, {"channels": channels, "rooms": rooms, "until": until, "now": now})
        return [Claimed(*row) for row in cursor.fetchall()]


_TOLD = (
    "raw_status",
    "status",
    "progress",
    "outputs",
    "outputs_expire_at",
    "raw_failure",
    "usage",
    "polls",
    "quiet_polls",
    "failed_polls_in_a_row",
    "not_found_in_a_row",
    "polled_at",
    "completed_at",
)


def store_told(jobs: Iterable[ProviderJob]) -> None:
    """What providers know, as they told it; one statement for all."""
    update_each(ProviderJob, {job.pk: {name: getattr(job, name) for name in _TOLD} for job in jobs})


@retried_as_victim
def write_nothing_new(looks: Collection[Look], now: datetime) -> None:
    """One statement for all. An attempt that moved meanwhile is left as it is: somebody knew more."""
    listed = sorted(looks, key=lambda look: look.attempt.pk)
    if not listed:
        return
    with prepared() as cursor:
        cursor.execute(
            _NOTHING_NEW,
            {
                "attempts": [look.attempt.pk for look in listed],
                "versions": [look.attempt.state_version for look in listed],
                "ats": [look.again_at for look in listed],
                "progress": [look.progress for look in listed],
                "now": now,
                "ttl_s": LEASE_TTL.total_seconds(),
            },
        )
