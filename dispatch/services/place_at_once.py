"""Selects and reserves for one job in the caller's transaction, outside any scan: the look, the batch and
the slots are the scan's own."""

from collections.abc import Callable
from datetime import datetime

from dispatch.live_catalogue import live_catalogue
from dispatch.models import Job
from dispatch.selection_facts import read_facts
from dispatch.services import raise_alerts
from dispatch.services.look_at_job import Look, look_at_job
from dispatch.services.write_batch import begin_batch, know_rounds, write_batch
from dispatch.unknown_slots import unknown_slots


def place_at_once(job: Job, now: datetime, and_then: Callable[[], None] | None = None) -> Look:
    """`job` is stored and locked by the caller. A job that starts has its attempt and its slot afterwards;
    one that could not is as it was.

    `and_then` runs when the slots are taken, before an ending that the look led to: what locks a customer
    comes behind what locks slots. Raises Overtaken."""
    catalogue = live_catalogue(now)
    model = catalogue.models[job.public_model_id]
    batch = begin_batch([job.public_model_id])
    know_rounds(batch, [job])
    contents = {job.content_fingerprint} if job.content_fingerprint else set()
    facts = read_facts(catalogue, [model], contents, now)
    look = look_at_job(job, model, facts, batch, now)
    if and_then is not None:
        batch.endings.insert(0, and_then)
    write_batch(batch, facts, now)
    raise_alerts.of_selections(batch.alerts.values(), now)
    raise_alerts.unknown_slots_full(unknown_slots(catalogue, [model], facts.occupancy), now)
    return look
