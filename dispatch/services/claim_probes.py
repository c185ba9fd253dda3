"""An attempt that tries again what was refused or paused is the only one: it claims that, or is not made."""

from datetime import datetime

from dispatch.models import Job
from dispatch.routing.types import Decision
from dispatch.selection_facts import SelectionFacts
from health.services.claim_group_probe import claim_group_probe
from health.services.claim_probe import claim_probe
from health.services.settle_probes import settle_probe


def claim_probes(decision: Decision, job: Job, facts: SelectionFacts, attempt: str, now: datetime) -> bool:
    """Whether `attempt` (a public id) may go where `decision` sends it; true where it probes nothing.

    False: somebody was first. Either way the facts say so to the jobs that come after. Part of the dispatch
    transaction, which holds the group's slots: its pause can't change in between."""
    supply = decision.ranking[0].candidate.supply.id
    match = facts.match(job, supply)
    if match is not None:
        facts.is_probed(job, match.record_id, now)
        if not claim_probe(match.record_id, attempt, now):
            return False
    group_id = facts.group_to_probe(supply)
    if group_id is None:
        return True
    facts.group_is_probed(group_id, now)
    if claim_group_probe(group_id, now):
        return True
    settle_probe(attempt, generated=False, now=now)
    return False
