"""After the clock was put back: what was to be done at a time is to be done as much earlier.

Every appointment in the rows was made by the clock as it ran before, and would come too late by the step: a
poll by an hour, a dead worker's lease by an hour. Circuits keep theirs, since their story is replayed from
its times; an operator may enable one that waits too long."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Model, QuerySet
from django.db.models.functions import Least

from catalog.audit import Actor, Change, record
from dispatch.lifecycle import FINAL_JOB_STATES
from dispatch.models import Attempt, Bell, CapacityLease, Job, WorkerBeat
from health.models import AlertDelivery

logger = logging.getLogger(__name__)
ACTOR = Actor("clock", "pulse")


def follow_clock(by: timedelta, now: datetime) -> int:
    """Brings forward what lies ahead of `now`; how many appointments there were."""
    with transaction.atomic():
        moved = sum(
            rows.filter(**{f"{field}__gt": now}).update(**{field: F(field) - by})
            for rows, field in _appointments()
        )
        _end_the_future(now)
        change = Change(
            "follow clock",
            "installation:clock",
            after={"put_back_s": round(by.total_seconds()), "appointments": moved},
        )
        record(ACTOR, change, now)
    logger.warning("The clock was put back; appointments were brought forward", extra={"count": moved})
    return moved


def _appointments() -> Iterator[tuple[QuerySet[Model], str]]:
    """In the order in which rows are locked everywhere: job, attempt, lease."""
    open_jobs = Job.objects.exclude(state__in=FINAL_JOB_STATES)
    looked_after = Attempt.objects.filter(next_look_at__isnull=False)
    held = CapacityLease.objects.filter(released_at=None)
    yield open_jobs, "next_action_at"
    yield open_jobs, "dispatch_deadline_at"
    yield looked_after, "execution_deadline_at"
    yield looked_after, "uncertain_deadline_at"
    yield looked_after, "next_look_at"
    yield held, "expires_at"
    yield held, "quarantine_until"
    yield AlertDelivery.objects.filter(state=AlertDelivery.State.PENDING), "next_try_at"


def _end_the_future(now: datetime) -> None:
    """Signs of life from times to come would vouch for whoever is silent by then."""
    for rows, field in (
        (Bell.objects, "rung_at"),
        (Bell.objects, "answered_at"),
        (WorkerBeat.objects, "beat_at"),
    ):
        rows.filter(**{f"{field}__gt": now}).update(**{field: Least(F(field), now)})
