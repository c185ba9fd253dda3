"""Why a recorded round did not choose a supply, and the least single change that would have made it win.

Reads the round as it was recorded and changes nothing."""

from dataclasses import replace
from datetime import datetime

from dispatch.compiling import Compilations
from dispatch.live_catalogue import live_catalogue
from dispatch.models import SelectionRound
from dispatch.queries.recorded_versions import recorded_documents
from dispatch.recorded_compilations import RecordedCompilations
from dispatch.routing import counterfactual
from dispatch.routing.counterfactual import WhyNot
from dispatch.routing.replay import inputs_from_snapshot
from dispatch.routing.types import RoutingInput


def why_not(row: SelectionRound, supply: str, now: datetime) -> WhyNot:
    """`supply` is a slug. Adapters are asked at `now` only for what the round never asked them.

    Raises NotBound for a supply that was no candidate, ReplayError for a round that can't be routed again."""
    return counterfactual.why_not(recorded_inputs(row, now), supply)


def recorded_inputs(row: SelectionRound, now: datetime) -> RoutingInput:
    """The round's input as it was recorded. Raises ReplayError for one that can't be routed again."""
    recorded = inputs_from_snapshot(row.snapshot, recorded_documents(row.snapshot))
    catalogue = live_catalogue(now)
    served = replace(catalogue.models[row.job.public_model_id], candidates=recorded.candidates)
    compiled_now = Compilations(row.job.request, served, catalogue)
    refusals = RecordedCompilations(row.snapshot, recorded, recorded.candidates, compiled_now)
    return replace(recorded, compile_refusals=refusals)
