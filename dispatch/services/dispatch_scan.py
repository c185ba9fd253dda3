"""The one-second scan: ends what is overdue, looks at jobs that wait by themselves, then serves the queue.

One catalogue, one set of locked slots and one commit serve a whole batch, and the submit tasks are rung in
that same commit. No provider is called here. A second attempt, or a job whose own content makes it wait, is
due by its `next_action_at` and goes before the queue: it had its turn there."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from catalog.retrying import retried_as_victim
from dispatch import queue
from dispatch.customer_slots import Overtaken, in_flight
from dispatch.live_catalogue import live_catalogue
from dispatch.models import Job
from dispatch.queue_state import TENANT_LIMIT
from dispatch.scan_turn import scan_turn
from dispatch.selection_facts import read_facts
from dispatch.services import raise_alerts
from dispatch.services.expire_parked import expire_parked
from dispatch.services.look_at_job import Batch, Look, Seen, Unplaceable, ends_at_sight, look_at_job
from dispatch.services.serve_queue import serve_queue
from dispatch.services.write_batch import begin_batch, locked_jobs, write_batch
from dispatch.unknown_slots import unknown_slots

logger = logging.getLogger(__name__)
WAIT = timedelta(seconds=1)
SET_ASIDE = timedelta(minutes=1)
WAIT_FOR_PUBLICATION = timedelta(seconds=2)
MOST_BATCHES = 20  # of the queue in one scan


def scan(clock: Callable[[], datetime]) -> int:
    """How many jobs were given a supply. Jobs that break the scan are set aside: they stop no other.

    Nothing, too, where another process scans and one more waits to: they will see what there is to see. So
    the clock is read when the turn has come: what fell due during the wait is due."""
    with scan_turn() as is_mine:
        return _scan(clock()) if is_mine else 0


def _scan(now: datetime) -> int:
    expire_parked(now)
    started = 0
    while True:
        try:
            started += look_at_due(now)
            return started + _serve(now)
        except Overtaken:
            continue  # by a request for an image; it is counted now
        except Unplaceable as unplaceable:
            for job, error in unplaceable.broken.items():
                logger.exception("A job was set aside", exc_info=error, extra={"job": job.public_id})
            set_aside([job.pk for job in unplaceable.broken], now)


def _serve(now: datetime) -> int:
    started = 0
    for _ in range(MOST_BATCHES):
        served = serve_queue(now)
        started += served.started
        if served.looked_at < settings.SCAN_BATCH_JOBS:
            break
    return started


def set_aside(job_ids: Collection[int], now: datetime) -> None:
    """Out of the queue, where they stood there, and looked at by themselves a minute later."""
    with transaction.atomic():
        held = Job.objects.select_for_update().filter(pk__in=job_ids).order_by("pk")
        waiting = held.filter(Q(line__isnull=False) | Q(next_action_at__lte=now))
        lines = dict(waiting.values_list("pk", "line"))
        Job.objects.filter(pk__in=lines).update(line_id=None, next_action_at=now + SET_ASIDE)
        gone = Counter(line for line in lines.values() if line is not None)
        queue.lock_lines(sorted(gone))
        queue.leave_many(gone)


@retried_as_victim
def look_at_due(now: datetime) -> int:
    """One transaction over the jobs whose own time has come; how many were started."""
    with transaction.atomic():
        due = Job.objects.filter(next_action_at__lte=now).order_by("next_action_at", "id")
        ids = list(due.values_list("pk", flat=True)[: settings.SCAN_BATCH_JOBS])
        if not ids:
            return 0
        catalogue = live_catalogue(now)
        batch = Batch({}, begin_batch([]).round_numbers)
        jobs = locked_jobs(batch, ids)
        models = {job.public_model_id: catalogue.models[job.public_model_id] for job in jobs.values()}
        batch.counts = begin_batch(models).counts
        contents = {job.content_fingerprint for job in jobs.values() if job.content_fingerprint}
        facts = read_facts(catalogue, models.values(), contents, now)
        batch.in_flight = in_flight({job.customer_id for job in jobs.values()})
        room = _room(jobs.values(), batch.in_flight)
        for job in (jobs[pk] for pk in ids if pk in jobs):
            if room[job.customer_id] <= 0 and not job.attempts.all():
                if not ends_at_sight(job, batch, now):
                    batch.waits_alone(job, {"outcome": TENANT_LIMIT}, now + WAIT)
                continue
            with batch.look_at(job):
                look = look_at_job(job, models[job.public_model_id], facts, batch, now)
                _conclude(job, look, batch, now)
                room[job.customer_id] -= look.seen is Seen.STARTS
        write_batch(batch, facts, now)
        raise_alerts.of_selections(batch.alerts.values(), now)
        slots = unknown_slots(catalogue, models.values(), facts.occupancy)
        raise_alerts.unknown_slots_full(slots, now)
    return len(batch.attempts)


def _room(jobs: Collection[Job], taken: Mapping[int, int]) -> dict[int, int]:
    """How many more each customer may have in flight. A second attempt does not ask: its job had begun."""
    return {job.customer_id: job.customer.max_in_flight - taken.get(job.customer_id, 0) for job in jobs}


def _conclude(job: Job, look: Look, batch: Batch, now: datetime) -> None:
    """A round of a job that waits is kept only when it says something new."""
    if look.seen is Seen.CLOSED:
        batch.waits_alone(job, {"outcome": look.outcome}, now + WAIT_FOR_PUBLICATION)
    elif look.seen is Seen.WAITS and look.inputs is not None and look.decision is not None:
        if (job.waiting or {}).get("signature") != look.signature:
            batch.keep_round(job, look.inputs, look.decision, now)
        batch.waits_alone(job, {"outcome": look.outcome, "signature": look.signature}, now + WAIT)
