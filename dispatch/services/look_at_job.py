"""One look at one job: the guard, a selection, and what it asks for; collected for the scan to write at once.

Nothing here locks a customer or a row of the queue: endings wait for the end of the batch, so that locks are
taken in the one order."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any

from django.db import DatabaseError

from billing.authentication import is_usable
from catalog.hashing import document_hash
from catalog.ids import public_id
from dispatch import capacity, queue
from dispatch.compiling import Compilations
from dispatch.lifecycle import JobState
from dispatch.live_catalogue import ServedModel, SupplyFacts
from dispatch.models import Attempt, CapacityLease, Job, SelectionCount, SelectionRound
from dispatch.routing.router import route
from dispatch.routing.snapshot import snapshot
from dispatch.routing.types import Decision, Finding, RoutingInput
from dispatch.selecting import inputs_for, is_hopeless
from dispatch.selection_facts import SelectionFacts
from dispatch.services.advance import end_job, refresh_job
from dispatch.services.claim_probes import claim_probes
from dispatch.words import ACCESS_REVOKED, customer_error


class Unplaceable(Exception):
    """Jobs broke their own looks; whatever the transaction did for others is undone with it."""

    def __init__(self, broken: Mapping[Job, Exception]) -> None:
        super().__init__(f"{', '.join(job.public_id for job in broken)} can't be looked at")
        self.broken = broken


class Seen(Enum):
    STARTS = auto()
    WAITS = auto()
    ENDS = auto()
    CLOSED = auto()  # its model is being changed


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen; of a job that waits, why."""

    seen: Seen
    outcome: str = ""
    signature: str = ""  # of outcome and reasons
    inputs: RoutingInput | None = None
    decision: Decision | None = None
    refused: frozenset[str] = frozenset()  # candidates whose adapter does not take this very request
    content_refused: bool = False  # refusal memory knows its content


@dataclass(frozen=True, slots=True)
class Selected:
    """A supply was found for a job, whose next attempt gets this id; and what it was found with."""

    job: Job
    model: ServedModel
    attempt_id: str
    inputs: RoutingInput
    decision: Decision
    compilations: Compilations

    @property
    def chosen(self) -> Finding:
        return self.decision.ranking[0]


@dataclass
class Batch:
    """What one transaction of the scan writes at its end."""

    counts: Mapping[int, SelectionCount]  # by model
    round_numbers: Counter[int]  # made so far, by job
    in_flight: dict[int, int] = field(default_factory=dict)  # as counted before anything began, by customer
    rounds: list[SelectionRound] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    leases: list[CapacityLease] = field(default_factory=list)
    started: list[tuple[Job, Decision]] = field(default_factory=list)
    waits: list[tuple[Job, dict[str, Any], datetime]] = field(default_factory=list)  # by themselves, until
    endings: list[Callable[[], None]] = field(default_factory=list)
    moves: list[Callable[[], None]] = field(default_factory=list)  # to lines of other lots, at the very end
    gone: Counter[int] = field(default_factory=Counter)  # jobs that leave the queue, by line
    alerts: dict[str, tuple[Job, tuple[str, ...]]] = field(
        default_factory=dict
    )  # of each model's last decision
    broken: dict[Job, Exception] = field(default_factory=dict)

    @contextmanager
    def look_at(self, job: Job) -> Iterator[None]:
        """What breaks within is the job's own doing. The others are looked at all the same, though nothing
        will be written: so all that break are known after one pass, not each after a pass of its own."""
        try:
            yield
        except DatabaseError:
            raise  # of the whole transaction, whatever the job
        except Exception as error:  # noqa: BLE001 - told by Unplaceable
            self.broken[job] = error

    def refuse_broken(self) -> None:
        """Raises Unplaceable for all that broke."""
        if self.broken:
            raise Unplaceable(self.broken)

    def note(self, job: Job, decision: Decision) -> None:
        """A switch leaves out what was tried, and does not ask how it is: its silence ends no alert."""
        if decision.alerts or job.started_at is None:
            self.alerts[job.public_model.slug] = (job, decision.alerts)

    def keep_round(self, job: Job, inputs: RoutingInput, decision: Decision, now: datetime) -> SelectionRound:
        self.round_numbers[job.pk] += 1
        kept = SelectionRound(
            public_id=public_id("rnd"),
            job=job,
            attempt_number=inputs.job.attempt,
            number=self.round_numbers[job.pk],
            snapshot=snapshot(inputs, decision),
            outcome=decision.outcome,
            created_at=now,
        )
        self.rounds.append(kept)
        return kept

    def leaves_line(self, job: Job) -> None:
        """The job's row loses its line in this transaction; the count follows at the end."""
        if job.line_id is not None:
            self.gone[job.line_id] += 1
            job.line_id = None

    def waits_alone(self, job: Job, waiting: dict[str, Any], until: datetime) -> None:
        self.leaves_line(job)
        self.waits.append((job, waiting, until))

    def moves_to(self, job: Job, refused: frozenset[str], now: datetime) -> None:
        self.leaves_line(job)
        self.moves.append(lambda: queue.move(job, refused, now))

    def end(self, job: Job, ending: Callable[[], None]) -> None:
        self.leaves_line(job)
        self.endings.append(ending)


def look_at_job(job: Job, model: ServedModel, facts: SelectionFacts, batch: Batch, now: datetime) -> Look:
    """A job that starts or ends is in `batch` afterwards; what to do with one that waits is the caller's."""
    now = max(now, job.created_at)  # a scan that waited for its turn meets jobs that came meanwhile
    if ends_at_sight(job, batch, now):
        return Look(Seen.ENDS)
    if not model.is_open:
        return Look(Seen.CLOSED, "model_not_published")
    count = batch.counts[job.public_model_id]
    compilations = Compilations(job.request, model, facts.catalogue)
    attempt_id = public_id("att")
    while True:
        inputs = inputs_for(job, model, facts, count.number + 1, compilations, now)
        decision = route(inputs)
        if decision.chosen is None:
            return _nobody(job, inputs, decision, compilations, batch, now)
        if claim_probes(decision, job, facts, attempt_id, now):
            break
        # The facts say now that it can't be had: the next round decides without it.
        batch.keep_round(job, inputs, decision, now)
    _start(Selected(job, model, attempt_id, inputs, decision, compilations), facts, batch, now)
    if inputs.job.attempt == 1:
        count.number += 1
    return Look(Seen.STARTS, inputs=inputs, decision=decision)


def ends_at_sight(job: Job, batch: Batch, now: datetime) -> bool:
    """Whether the guard ends the job before any supply is looked at."""
    if not is_usable(job.api_key, now):
        batch.end(job, lambda: end_job(job, ACCESS_REVOKED, now))
        return True
    if job.cancel_requested_at is not None or now >= job.dispatch_deadline_at:
        batch.end(job, lambda: refresh_job(job, now))
        return True
    return False


def _nobody(
    job: Job,
    inputs: RoutingInput,
    decision: Decision,
    compilations: Compilations,
    batch: Batch,
    now: datetime,
) -> Look:
    """Ends where no wait can help."""
    batch.note(job, decision)
    look = waits(inputs, decision, compilations)
    if is_hopeless(decision):
        batch.keep_round(job, inputs, decision, now)
        batch.end(job, lambda: _end_hopeless(job, now))
        return Look(Seen.ENDS)
    return look


def waits(inputs: RoutingInput, decision: Decision, compilations: Compilations) -> Look:
    """`compilations` is asked for every candidate, so that what it refuses depends on the catalogue alone."""
    reasons = [[finding.candidate.key, finding.reason] for finding in decision.findings]
    return Look(
        Seen.WAITS,
        decision.outcome,
        document_hash([decision.outcome, decision.as_json()["layer"], reasons]),
        inputs,
        decision,
        frozenset(compilations),
        bool(inputs.refusals),
    )


def _end_hopeless(job: Job, now: datetime) -> None:
    last = job.attempts.order_by("-number").first()
    end_job(job, customer_error(JobState.FAILED, last, access_revoked=False), now)


def _start(selected: Selected, facts: SelectionFacts, batch: Batch, now: datetime) -> None:
    """Takes the slot and prepares the rows of one attempt."""
    job, decision = selected.job, selected.decision
    supply = facts.catalogue.supplies[selected.chosen.candidate.supply.id]
    facts.take(supply.place)
    attempt = _attempt(selected, supply, facts, now)
    attempt.selection_round = batch.keep_round(job, selected.inputs, decision, now)
    batch.attempts.append(attempt)
    batch.leases.append(_lease(attempt, supply, now))
    batch.started.append((job, decision))
    batch.leaves_line(job)
    batch.note(job, decision)


def _attempt(selected: Selected, supply: SupplyFacts, facts: SelectionFacts, now: datetime) -> Attempt:
    job, model, candidate = selected.job, selected.model, selected.chosen.candidate
    plan = selected.compilations.plan(candidate.key).as_json()
    return Attempt(
        public_id=selected.attempt_id,
        job=job,
        number=selected.inputs.job.attempt,
        supply_id=supply.supply_id,
        channel_id=supply.place.channel_id,
        tier=candidate.tier,
        capability_version_id=supply.capability_version_id,
        cost_rule_version_id=supply.price_in_force(),
        policy_id=model.policy_id,
        model_revision=model.model.revision or 0,
        sent_request=selected.compilations.transformed_request(candidate.key),
        compile_plan=plan,
        client_request_key=selected.attempt_id,
        request_hash=document_hash(
            [job.request_hash, candidate.supply.id, candidate.supply.capability_version.hash, plan]
        ),
        quote_micros=selected.chosen.quote or 0,
        quote_currency=model.policy.currency,
        channel_epoch=facts.epoch_of_channel(supply.place.channel_id),
        supply_epoch=facts.epoch_of_supply(supply.supply_id),
        created_at=now,
    )


def _lease(attempt: Attempt, supply: SupplyFacts, now: datetime) -> CapacityLease:
    return CapacityLease(
        token=public_id("lse"),
        attempt=attempt,
        customer_id=attempt.job.customer_id,
        channel_id=supply.place.channel_id,
        supply_id=supply.supply_id,
        group_id=supply.place.group_id,
        channel_epoch=attempt.channel_epoch,
        supply_epoch=attempt.supply_epoch,
        granted_at=now,
        renewed_at=now,
        expires_at=now + capacity.LEASE_TTL,
    )


def started_columns(job: Job, decision: Decision) -> dict[str, Any]:
    """What the job's row says of its delivery from now on."""
    degradation = decision.degradation
    return {
        "actual_profile": degradation.actual_profile if degradation else job.requested_profile,
        "dropped_inputs": list(degradation.dropped_inputs) if degradation else [],
    }
