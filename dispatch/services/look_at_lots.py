"""One selection for each lot, without a lock: in which somebody could start, and why not in the others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection

from dispatch.compiling import Compilations
from dispatch.live_catalogue import LiveCatalogue
from dispatch.models import Job, SelectionRound
from dispatch.queue_heads import ActiveLot
from dispatch.routing.router import route
from dispatch.routing.types import Decision
from dispatch.selecting import inputs_for, is_hopeless
from dispatch.selection_facts import SelectionFacts
from dispatch.services.look_at_job import Batch, Look, waits

TOLD_AGAIN_AFTER = timedelta(seconds=5)  # a lot that says nothing new is written no more often than this

_WRITE_LOTS = """
UPDATE dispatch_lot AS lot
SET outcome = seen.outcome, looked_at = %(now)s,
    signature = CASE WHEN seen.outcome = '' THEN lot.signature ELSE seen.signature END,
    round_id = coalesce(seen.round_id, lot.round_id),
    waits_since_at = CASE WHEN seen.outcome = '' THEN NULL
                          WHEN lot.outcome = '' THEN %(now)s ELSE lot.waits_since_at END
FROM unnest(%(ids)s::bigint[], %(outcomes)s::text[], %(signatures)s::text[], %(rounds)s::bigint[])
     AS seen(id, outcome, signature, round_id)
WHERE lot.id = seen.id"""


@dataclass
class Verdicts:
    """What this transaction saw of each lot."""

    lots: Mapping[int, ActiveLot]
    now: datetime
    is_part: bool  # there may be more lots than these: each look is written, so that the next are others
    open: set[int] = field(default_factory=set)
    free: dict[str, int] = field(default_factory=dict)  # slots seen, by supply
    _waits: dict[int, tuple[str, str]] = field(default_factory=dict)  # outcome, signature
    _rounds: dict[int, SelectionRound] = field(default_factory=dict)

    def closes(self, lot_id: int, outcome: str, signature: str = "") -> None:
        self.open.discard(lot_id)
        self._waits[lot_id] = (outcome, signature)

    def closes_by(self, lot_id: int, job: Job, look: Look, batch: Batch) -> None:
        """Nobody was found for `job`, and so for nobody in its lot. Only a round that says something new is
        kept."""
        self.closes(lot_id, look.outcome, look.signature)
        if look.inputs is None or look.decision is None:
            return
        if self.lots[lot_id].signature != look.signature:
            self._rounds[lot_id] = batch.keep_round(job, look.inputs, look.decision, self.now)
        if self.is_to_be_told(lot_id):
            batch.note(job, look.decision)

    def opens(self, lot_id: int, decision: Decision) -> None:
        self.open.add(lot_id)
        for finding in decision.ranking:
            self.free[finding.candidate.supply.id] = finding.free or 1

    def is_to_be_told(self, lot_id: int) -> bool:
        lot = self.lots[lot_id]
        outcome, signature = self._waits.get(lot_id, ("", lot.signature))
        stale = lot.looked_at is None or self.now - lot.looked_at >= TOLD_AGAIN_AFTER
        return stale or (outcome, signature) != (lot.outcome, lot.signature)

    def write(self) -> None:
        """After the rounds that it names."""
        told = [lot_id for lot_id in sorted(self.lots) if self.is_part or self.is_to_be_told(lot_id)]
        if not told:
            return
        waiting = [self._waits.get(lot_id, ("", "")) for lot_id in told]
        rounds = [self._rounds.get(lot_id) for lot_id in told]
        with connection.cursor() as cursor:
            cursor.execute(
                _WRITE_LOTS,
                {
                    "now": self.now,
                    "ids": told,
                    "outcomes": [outcome for outcome, _ in waiting],
                    "signatures": [signature for _, signature in waiting],
                    "rounds": [kept and kept.pk for kept in rounds],
                },
            )


def look_at_lots(
    lots: Iterable[ActiveLot],
    jobs: Mapping[int, Job],
    catalogue: LiveCatalogue,
    facts: SelectionFacts,
    batch: Batch,
    now: datetime,
    is_part: bool = False,
) -> Verdicts:
    """`jobs`: those that stand for the lots, by id; a lot whose last job is just leaving has none. `is_part`:
    whether there may be more lots."""
    verdicts = Verdicts({lot.lot_id: lot for lot in lots}, now, is_part)
    for lot in verdicts.lots.values():
        model = catalogue.models[lot.public_model_id]
        job = jobs.get(lot.job_id or 0)
        if not model.is_open:
            verdicts.closes(lot.lot_id, "model_not_published")
        elif job is not None:
            with batch.look_at(job):
                _look(lot, job, catalogue, facts, batch, verdicts)
            if job in batch.broken:
                verdicts.open.add(lot.lot_id)  # the others in it stand for themselves
    return verdicts


def _look(
    lot: ActiveLot,
    job: Job,
    catalogue: LiveCatalogue,
    facts: SelectionFacts,
    batch: Batch,
    verdicts: Verdicts,
) -> None:
    """Open too where jobs have to be looked at one by one: to be ended, or moved to others like them."""
    model = catalogue.models[lot.public_model_id]
    compilations = Compilations(job.request, model, catalogue)
    number = batch.counts[lot.public_model_id].number + 1
    inputs = inputs_for(job, model, facts, number, compilations, verdicts.now)
    decision = route(inputs)
    if decision.chosen is not None or is_hopeless(decision):
        verdicts.opens(lot.lot_id, decision)
        return
    look = waits(inputs, decision, compilations)
    if look.refused != frozenset(lot.refused):
        verdicts.opens(lot.lot_id, decision)
    else:
        verdicts.closes_by(lot.lot_id, job, look, batch)
