"""The one-second scan: selects and reserves for the jobs that are due, many in one transaction.

One catalogue, one set of locked slots and one commit serve the whole batch, and the submit tasks are rung
in that same commit. No provider is called here."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Count
from django_q.tasks import async_task

from billing.authentication import is_usable
from catalog.hashing import document_hash
from catalog.ids import public_id
from dispatch import capacity
from dispatch.compiling import Compilations
from dispatch.lifecycle import JobState
from dispatch.live_catalogue import ServedModel, SupplyFacts, live_catalogue
from dispatch.models import Attempt, CapacityLease, Job, SelectionCount, SelectionRound
from dispatch.repository import move_job
from dispatch.routing.router import route
from dispatch.routing.snapshot import snapshot
from dispatch.routing.types import Decision, RoutingInput
from dispatch.selecting import inputs_for, is_hopeless
from dispatch.selection_facts import SelectionFacts, read_facts
from dispatch.services import raise_alerts
from dispatch.services.advance import end_job, refresh_job
from dispatch.services.claim_probes import claim_probes
from dispatch.unknown_slots import unknown_slots
from dispatch.words import ACCESS_REVOKED, customer_error

logger = logging.getLogger(__name__)
SCAN_LOCK = 7_301  # advisory: one scan at a time; a second waits its turn
WAIT = timedelta(seconds=1)
SET_ASIDE = timedelta(minutes=1)
WAIT_FOR_PUBLICATION = timedelta(seconds=2)


@dataclass
class Batch:
    """What one scan writes at its end."""

    round_numbers: Counter[int]  # made so far, by job
    rounds: list[SelectionRound] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    leases: list[CapacityLease] = field(default_factory=list)
    alerts: dict[str, tuple[Job, tuple[str, ...]]] = field(
        default_factory=dict
    )  # of each model's last decision

    def note(self, job: Job, decision: Decision) -> None:
        self.alerts[job.public_model.slug] = (job, decision.alerts)


class Unplaceable(Exception):
    """A job broke its own look; whatever the transaction did for others is undone with it."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"{job.public_id} can't be looked at")
        self.job = job


def scan(now: datetime) -> int:
    """How many jobs were given a supply. A job that breaks the scan is set aside: it stops no other."""
    while True:
        try:
            return _scan(now)
        except Unplaceable as broken:
            logger.exception("A job was set aside", extra={"job": broken.job.public_id})
            still_due = Job.objects.filter(pk=broken.job.pk, next_action_at__lte=now)
            still_due.update(next_action_at=now + SET_ASIDE)


def _scan(now: datetime) -> int:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SCAN_LOCK])
        jobs = _claim_due(now)
        if not jobs:
            return 0
        catalogue = live_catalogue(now)
        models = {job.public_model_id: catalogue.models[job.public_model_id] for job in jobs}
        contents = {job.content_fingerprint for job in jobs if job.content_fingerprint}
        facts = read_facts(catalogue, models.values(), contents, now)
        counts = _selection_counts(models)
        batch = Batch(_round_numbers(jobs))
        for job in jobs:
            try:
                _look_at(job, models[job.public_model_id], facts, counts, batch, now)
            except DatabaseError:
                raise  # of the whole transaction, whatever the job
            except Exception as error:
                raise Unplaceable(job) from error
        _write(batch, facts, counts, now)
        slots = unknown_slots(catalogue, models.values(), facts.occupancy)
        raise_alerts.unknown_slots_full(slots, now)
    return len(batch.attempts)


def _claim_due(now: datetime) -> list[Job]:
    due = (
        Job.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("customer", "api_key__customer", "public_model__policy")
        .prefetch_related("attempts__supply")
        .filter(next_action_at__lte=now)
        .order_by("next_action_at", "id")
    )
    return list(due[: settings.SCAN_BATCH_JOBS])


def _round_numbers(jobs: list[Job]) -> Counter[int]:
    rounds = SelectionRound.objects.filter(job__in=jobs).values_list("job").annotate(Count("pk")).order_by()
    return Counter(dict(rounds))


def _selection_counts(models: Iterable[int]) -> dict[int, SelectionCount]:
    """Locked by the scan's own lock; a model's first selection makes its row."""
    known = {
        count.public_model_id: count for count in SelectionCount.objects.filter(public_model__in=list(models))
    }
    for model in models:
        if model not in known:
            known[model] = SelectionCount.objects.create(public_model_id=model)
    return known


def _look_at(
    job: Job,
    model: ServedModel,
    facts: SelectionFacts,
    counts: Mapping[int, SelectionCount],
    batch: Batch,
    now: datetime,
) -> None:
    """The guard, then a selection, then what it asks for."""
    if not is_usable(job.api_key, now):
        end_job(job, ACCESS_REVOKED, now)
        return
    if job.cancel_requested_at is not None or now >= job.dispatch_deadline_at:
        refresh_job(job, now)
        return
    if not model.is_open:
        _wait(job, {"outcome": "model_not_published"}, now + WAIT_FOR_PUBLICATION)
        return
    count = counts[job.public_model_id]
    compilations = Compilations(job.request, model, facts.catalogue)
    attempt_id = public_id("att")
    while True:
        inputs = inputs_for(job, model, facts, count.number + 1, compilations, now)
        decision = route(inputs)
        if decision.chosen is None:
            _nobody(job, inputs, decision, batch, now)
            return
        if claim_probes(decision, job, facts, attempt_id, now):
            break
        # The facts say now that it can't be had: the next round decides without it.
        batch.rounds.append(_round(job, inputs, decision, batch, now))
    _start(job, model, attempt_id, inputs, decision, compilations, facts, batch, now)
    if inputs.job.attempt == 1:
        count.number += 1


def _nobody(job: Job, inputs: RoutingInput, decision: Decision, batch: Batch, now: datetime) -> None:
    """Waits, or ends where no wait can help. A round is kept only when it says something new."""
    signature = document_hash(
        [
            decision.outcome,
            decision.as_json()["layer"],
            [[f.candidate.key, f.reason] for f in decision.findings],
        ]
    )
    if (job.waiting or {}).get("signature") != signature:
        batch.rounds.append(_round(job, inputs, decision, batch, now))
    batch.note(job, decision)
    if is_hopeless(decision):
        last = job.attempts.order_by("-number").first()
        end_job(job, customer_error(JobState.FAILED, last, access_revoked=False), now)
        return
    _wait(job, {"outcome": decision.outcome, "signature": signature}, now + WAIT)


def _wait(job: Job, waiting: dict[str, Any], until: datetime) -> None:
    Job.objects.filter(pk=job.pk).update(next_action_at=until, waiting=waiting)


def _round(job: Job, inputs: RoutingInput, decision: Decision, batch: Batch, now: datetime) -> SelectionRound:
    batch.round_numbers[job.pk] += 1
    return SelectionRound(
        public_id=public_id("rnd"),
        job=job,
        attempt_number=inputs.job.attempt,
        number=batch.round_numbers[job.pk],
        snapshot=snapshot(inputs, decision),
        outcome=decision.outcome,
        created_at=now,
    )


def _start(
    job: Job,
    model: ServedModel,
    attempt_id: str,
    inputs: RoutingInput,
    decision: Decision,
    compilations: Compilations,
    facts: SelectionFacts,
    batch: Batch,
    now: datetime,
) -> None:
    """Takes the slot and prepares the rows of one attempt."""
    chosen = decision.ranking[0]
    supply = facts.catalogue.supplies[chosen.candidate.supply.id]
    facts.take(supply.place)
    selection_round = _round(job, inputs, decision, batch, now)
    attempt = _attempt(job, model, attempt_id, supply, decision, compilations, selection_round, facts, now)
    batch.rounds.append(selection_round)
    batch.attempts.append(attempt)
    batch.leases.append(_lease(attempt, supply, now))
    _mark_dispatching(job, decision, now)
    batch.note(job, decision)


def _attempt(
    job: Job,
    model: ServedModel,
    attempt_id: str,
    supply: SupplyFacts,
    decision: Decision,
    compilations: Compilations,
    selection_round: SelectionRound,
    facts: SelectionFacts,
    now: datetime,
) -> Attempt:
    chosen = decision.ranking[0]
    plan = compilations.plan(chosen.candidate.key)
    return Attempt(
        public_id=attempt_id,
        job=job,
        number=selection_round.attempt_number,
        selection_round=selection_round,
        supply_id=supply.supply_id,
        channel_id=supply.place.channel_id,
        tier=chosen.candidate.tier,
        capability_version_id=supply.capability_version_id,
        cost_rule_version_id=supply.price_in_force(),
        policy_id=model.policy_id,
        model_revision=model.model.revision or 0,
        sent_request=compilations.transformed_request(chosen.candidate.key),
        compile_plan=plan.as_json(),
        client_request_key=attempt_id,
        request_hash=document_hash(
            [
                job.request_hash,
                chosen.candidate.supply.id,
                chosen.candidate.supply.capability_version.hash,
                plan.as_json(),
            ]
        ),
        quote_micros=chosen.quote or 0,
        quote_currency=model.policy.currency,
        channel_epoch=facts.epoch_of_channel(supply.place.channel_id),
        supply_epoch=facts.epoch_of_supply(supply.supply_id),
        created_at=now,
    )


def _lease(attempt: Attempt, supply: SupplyFacts, now: datetime) -> CapacityLease:
    return CapacityLease(
        token=public_id("lse"),
        attempt=attempt,
        channel_id=supply.place.channel_id,
        supply_id=supply.supply_id,
        group_id=supply.place.group_id,
        channel_epoch=attempt.channel_epoch,
        supply_epoch=attempt.supply_epoch,
        granted_at=now,
        renewed_at=now,
        expires_at=now + capacity.LEASE_TTL,
    )


def _mark_dispatching(job: Job, decision: Decision, now: datetime) -> None:
    degradation = decision.degradation
    changes: dict[str, Any] = {
        "next_action_at": None,
        "waiting": None,
        "started_at": job.started_at or now,
        "actual_profile": degradation.actual_profile if degradation else job.requested_profile,
        "dropped_inputs": list(degradation.dropped_inputs) if degradation else [],
    }
    move_job(job, JobState.DISPATCHING, now, changes)


def _write(batch: Batch, facts: SelectionFacts, counts: Mapping[int, SelectionCount], now: datetime) -> None:
    SelectionRound.objects.bulk_create(batch.rounds)
    Attempt.objects.bulk_create(batch.attempts)
    CapacityLease.objects.bulk_create(batch.leases)
    if batch.attempts:
        capacity.write(facts.occupancy)
        SelectionCount.objects.bulk_update(counts.values(), ["number"])
    for attempt in batch.attempts:
        async_task("dispatch.tasks.submit", attempt.pk, cluster="traffic")
    raise_alerts.of_selections(batch.alerts.values(), now)
