"""Begins and ends one transaction of the scan: what was collected is written in bulk, in locks' order."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import batched

from django.conf import settings
from django.db.models import Count

from billing.models import ApiKey
from catalog.models import PublicModel
from catalog.rows import insert_each
from dispatch import capacity
from dispatch.customer_slots import Overtaken, locked_in_flight
from dispatch.models import Job, SelectionCount, SelectionRound
from dispatch.repository import look_again, start_jobs
from dispatch.ringing import ring_all
from dispatch.selection_facts import SelectionFacts
from dispatch.services.look_at_job import Batch, started_columns


def begin_batch(models: Iterable[int]) -> Batch:
    return Batch(_selection_counts(list(models)), Counter())


def locked_jobs(batch: Batch, ids: Iterable[int]) -> dict[int, Job]:
    """Those that nobody else holds, with what a look needs; the batch knows their rounds then."""
    jobs = list(
        Job.objects.select_for_update(skip_locked=True, of=("self",))
        .defer("first_answer", "metadata")
        .prefetch_related("attempts__supply")
        .filter(pk__in=list(ids))
    )
    _give_their_rows(jobs)
    know_rounds(batch, jobs)
    return {job.pk: job for job in jobs}


def _give_their_rows(jobs: Iterable[Job]) -> None:
    """Many jobs share a key and a model: one row of each for all of them, not one for each job."""
    keys = ApiKey.objects.select_related("customer").in_bulk({job.api_key_id for job in jobs})
    models = PublicModel.objects.select_related("policy").in_bulk({job.public_model_id for job in jobs})
    for job in jobs:
        job.api_key, job.public_model = keys[job.api_key_id], models[job.public_model_id]
        job.customer = job.api_key.customer


def know_rounds(batch: Batch, jobs: Iterable[Job]) -> None:
    rounds = (
        SelectionRound.objects.filter(job__in=list(jobs)).values_list("job").annotate(Count("pk")).order_by()
    )
    batch.round_numbers.update({job: made for job, made in rounds if job not in batch.round_numbers})


def _selection_counts(models: list[int]) -> dict[int, SelectionCount]:
    """Locked: a request that waits for its image selects beside the scan. A first selection makes the row."""
    wanted = SelectionCount.objects.select_for_update().filter(public_model__in=models).order_by("pk")
    known = {count.public_model_id: count for count in wanted}
    if missing := sorted(set(models) - known.keys()):
        SelectionCount.objects.bulk_create(
            [SelectionCount(public_model_id=model) for model in missing], ignore_conflicts=True
        )
        known = {count.public_model_id: count for count in wanted.all()}
    return known


def write_batch(batch: Batch, facts: SelectionFacts | None, now: datetime) -> None:
    """All but the queue's own rows and the alerts, which come after them. `facts`: whose slots were taken.

    Raises Unplaceable, Overtaken."""
    batch.refuse_broken()
    insert_each(batch.rounds)
    for attempt in batch.attempts:
        attempt.selection_round = attempt.selection_round  # which has its id only now
    insert_each(batch.attempts)
    for lease in batch.leases:
        lease.attempt = lease.attempt
    insert_each(batch.leases)
    _keep_limits(batch)
    if batch.attempts and facts is not None:
        capacity.write(facts.occupancy)
        SelectionCount.objects.bulk_update(batch.counts.values(), ["number"])
    start_jobs([(job, started_columns(job, decision)) for job, decision in batch.started], now)
    look_again(batch.waits)
    # Of a synchronous job the thread of its own request sends it.
    to_send = [attempt.pk for attempt in batch.attempts if not attempt.job.synchronous]
    ring_all("dispatch.tasks.submit", batched(to_send, settings.SUBMIT_TOGETHER), cluster="traffic")
    for ending in batch.endings:
        ending()


def _keep_limits(batch: Batch) -> None:
    """A second attempt asks for nothing: its job had begun. What was over its limit when it was counted is so
    by such attempts, and may stay."""
    begun = [attempt.job.customer for attempt in batch.attempts if attempt.number == 1]
    if not begun:
        return
    ours = Counter(lease.customer_id for lease in batch.leases)
    firsts = Counter(customer.pk for customer in begun)
    held = locked_in_flight(firsts)
    for customer in {each.pk: each for each in begun}.values():
        others = held[customer.pk] - ours[customer.pk]
        is_news = others > batch.in_flight.get(customer.pk, 0)
        if is_news and others + firsts[customer.pk] > customer.max_in_flight:
            raise Overtaken
