"""One transaction of the scan over the fair queue: looks at each lot once, then starts jobs in fair order.

A lot in which nobody could start costs one selection, however many wait in it. The order is of
`dispatch/fairness.py`; its state is read from rows and written back with what it led to, so that any process
goes on from there."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from catalog.retrying import retried_as_victim
from dispatch import queue
from dispatch.customer_slots import in_flight
from dispatch.fairness import CLASS_KEYS, Head, Pick
from dispatch.live_catalogue import LiveCatalogue, live_catalogue
from dispatch.models import Job
from dispatch.queue_heads import WaitingLine, active_lots, heads_of, waiting_lines
from dispatch.queue_state import (
    TENANT_LIMIT,
    QueueState,
    Tenant,
    changed_tenants,
    read_state,
    write_state,
)
from dispatch.selection_facts import SelectionFacts, glance, read_facts
from dispatch.services import raise_alerts
from dispatch.services.look_at_job import Batch, Look, Seen, look_at_job
from dispatch.services.look_at_lots import Verdicts, look_at_lots
from dispatch.services.write_batch import begin_batch, know_rounds, locked_jobs, write_batch
from dispatch.unknown_slots import unknown_slots

LOTS_PER_SCAN = 500
TENANTS_READ_AHEAD = 64
MOST_HEADS = 256  # of one line in one read
WAIT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Served:
    started: int
    looked_at: int  # jobs, each by itself


@retried_as_victim
def serve_queue(now: datetime) -> Served:
    """Raises Unplaceable for jobs that break their looks, and Overtaken; nothing of the transaction stays."""
    with transaction.atomic():
        lots = active_lots(LOTS_PER_SCAN)
        if not lots:
            return Served(0, 0)
        catalogue = live_catalogue(now)
        models = {lot.public_model_id: catalogue.models[lot.public_model_id] for lot in lots}
        batch = begin_batch(models)
        jobs = _standing_for(lot.job_id for lot in lots)
        know_rounds(batch, jobs.values())
        seen = glance(catalogue, models.values(), now)
        is_part = len(lots) == LOTS_PER_SCAN
        verdicts = look_at_lots(lots, jobs, catalogue, seen, batch, now, is_part)
        if not verdicts.open:
            _write(batch, verdicts, None, None, now)
            slots = unknown_slots(catalogue, models.values(), seen.occupancy)
            raise_alerts.unknown_slots_full(slots, now)
            return Served(0, 0)
        open_models = {verdicts.lots[lot].public_model_id for lot in verdicts.open}
        facts = read_facts(catalogue, [models[model] for model in open_models], set(), now)
        state = read_state(waiting_lines(verdicts.open))
        serving = Serving(state, verdicts, facts, catalogue, batch, now)
        serving.run()
        _write(batch, verdicts, facts, state, now)
        slots = unknown_slots(catalogue, models.values(), {**seen.occupancy, **facts.occupancy})
        raise_alerts.unknown_slots_full(slots, now)
    return Served(len(batch.attempts), serving.looked_at)


def _standing_for(ids: Iterable[int | None]) -> dict[int, Job]:
    jobs = (
        Job.objects.select_related("public_model")
        .prefetch_related("attempts__supply")
        .in_bulk([job for job in ids if job is not None])
    )
    return dict(jobs)


def _write(
    batch: Batch, verdicts: Verdicts, facts: SelectionFacts | None, state: QueueState | None, now: datetime
) -> None:
    write_batch(batch, facts, now)
    verdicts.write()
    if state is not None:
        _write_queue(batch, state, now)
    for move in batch.moves:
        move()
    raise_alerts.of_selections(batch.alerts.values(), now)


def _write_queue(batch: Batch, state: QueueState, now: datetime) -> None:
    changed = {state.lines[tenant][0].line_id for tenant in changed_tenants(state)}
    queue.lock_lines(sorted(changed | set(batch.gone) | set(state.watermarks)))
    queue.leave_many(batch.gone)
    write_state(state, now)


class Serving:
    """The fair order, job by job, against the slots that are left."""

    def __init__(
        self,
        state: QueueState,
        verdicts: Verdicts,
        facts: SelectionFacts,
        catalogue: LiveCatalogue,
        batch: Batch,
        now: datetime,
    ) -> None:
        self.state, self.verdicts, self.facts = state, verdicts, facts
        self.catalogue, self.batch, self.now = catalogue, batch, now
        self.looked_at = 0
        self._lots = {line.line_id: line.lot_id for lines in state.lines.values() for line in lines}
        self._jobs: dict[int, Job] = {}
        self._known: set[int] = set()  # jobs whose heads were read, whatever became of them
        batch.in_flight = in_flight({customer for _, customer in state.lines})
        self._room = {
            customer: lines[0].max_in_flight - batch.in_flight.get(customer, 0)
            for (_, customer), lines in state.lines.items()
        }

    def run(self) -> None:
        for tenant in self.state.lines:
            self._hold_back_at_limit(tenant)
        while self.verdicts.open and self.looked_at < settings.SCAN_BATCH_JOBS:
            pick = self.state.queue.next()
            if pick is None:
                break
            self._serve(pick)

    def _hold_back_at_limit(self, tenant: Tenant) -> None:
        if self._room[tenant[1]] <= 0:
            self.state.held_back[tenant] = TENANT_LIMIT
            self.state.queue.drop(*tenant)

    def _serve(self, pick: Pick) -> None:
        tenant = (pick.service_class, pick.customer)
        head = self.state.heads[tenant].next() or self._read_ahead(pick)
        if head is None:
            self.state.queue.drop(*tenant)
            return
        job = self._jobs.get(head.job)
        if job is None or job.line_id is None:  # somebody holds it, or it has just left
            self.state.heads[tenant].take(head, served=False)
            return
        self.looked_at += 1
        look = self._look(job)
        if look is None:
            self.state.heads[tenant].take(head, served=False)
        else:
            self._conclude(pick, head, job, look)

    def _look(self, job: Job) -> Look | None:
        """None: it breaks its look."""
        model = self.catalogue.models[job.public_model_id]
        with self.batch.look_at(job):
            return look_at_job(job, model, self.facts, self.batch, self.now)
        return None

    def _conclude(self, pick: Pick, head: Head, job: Job, look: Look) -> None:
        heads = self.state.heads[pick.service_class, pick.customer]
        lot_id = self._lots[head.line]
        if look.seen is Seen.STARTS:
            self.state.queue.serve(pick, head.cost_ms)
            heads.take(head, served=True)
            self._room[pick.customer] -= 1
            for service_class in CLASS_KEYS:
                if (service_class, pick.customer) in self.state.lines:
                    self._hold_back_at_limit((service_class, pick.customer))
        elif look.seen is Seen.ENDS:
            heads.take(head, served=False)
        elif look.content_refused:
            self._let_wait_alone(job, look)
            heads.take(head, served=False)
        elif look.seen is Seen.WAITS and look.refused != frozenset(self.verdicts.lots[lot_id].refused):
            self.batch.moves_to(job, look.refused, self.now)
            heads.take(head, served=False)
        else:
            self.verdicts.closes_by(lot_id, job, look, self.batch)
            self._close(lot_id)

    def _let_wait_alone(self, job: Job, look: Look) -> None:
        """Its content was refused before: what it waits for concerns nobody else."""
        assert look.inputs is not None and look.decision is not None  # noqa: S101, PT018 - it waits
        self.batch.keep_round(job, look.inputs, look.decision, self.now)
        waiting = {"outcome": look.outcome, "signature": look.signature}
        self.batch.waits_alone(job, waiting, self.now + WAIT)

    def _close(self, lot_id: int) -> None:
        """For this scan. A tenant that waits for other lots too stays in the ring for those."""
        for tenant, lines in self.state.lines.items():
            if any(line.lot_id == lot_id for line in lines):
                for line in lines:
                    if line.lot_id == lot_id:
                        self.state.heads[tenant].drop_line(line.line_id)
                if not any(line.lot_id in self.verdicts.open for line in lines):
                    self.state.queue.drop(*tenant)

    def _read_ahead(self, pick: Pick) -> Head | None:
        """Heads of this tenant, and of those who are probably next, by one read; deeper where all that was
        met is overdue or held by somebody."""
        mine = self.state.lines[pick.service_class, pick.customer]
        heads = self.state.heads[pick.service_class, pick.customer]
        while heads.next() is None and any(self._may_have_more(line) for line in mine):
            self._read(self._lines_to_read(pick))
        return heads.next()

    def _lines_to_read(self, pick: Pick) -> list[WaitingLine]:
        ring = self.state.queue.tenants[pick.service_class]
        tenants = dict.fromkeys([pick.customer, *ring.upcoming(TENANTS_READ_AHEAD)])
        return [
            line
            for customer in tenants
            if self.state.heads[pick.service_class, customer].next() is None
            for line in self.state.lines[pick.service_class, customer]
            if self._may_have_more(line)
        ]

    def _may_have_more(self, line: WaitingLine) -> bool:
        return line.lot_id in self.verdicts.open and line.depth < min(line.waiting, MOST_HEADS)

    def _read(self, lines: list[WaitingLine]) -> None:
        depth = self._depth(lines)
        found = heads_of(lines, depth, self.now)
        new = {head.job for of_line in found.values() for head in of_line.heads} - self._known
        jobs = locked_jobs(self.batch, new)
        self.facts.know_contents((job.content_fingerprint for job in jobs.values()), self.now)
        self._jobs |= jobs
        self._known |= new
        for line in lines:
            of_line = found[line.line_id]
            heads = self.state.heads[line.service_class, line.customer_id]
            heads.put(head for head in of_line.heads if head.job in new)
            line.depth = MOST_HEADS if of_line.is_all else depth
            if of_line.watermark_at is not None:
                self.state.watermarks.setdefault(line.line_id, of_line.watermark_at)

    def _depth(self, lines: list[WaitingLine]) -> int:
        """As many of each as the free slots could take; at a second read more than before."""
        left = min(sum(self.verdicts.free.values()) or 1, settings.SCAN_BATCH_JOBS) - len(self.batch.attempts)
        before = max(line.depth for line in lines)
        return min(max(-(-max(left, 1) // len(lines)), 1) + before * 2, MOST_HEADS)
