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


def why_not(row: SelectionRound, supply: str, now: datetime) -> WhyNot:
    """`supply` is a slug. Adapters are asked at `now` only for what the round never asked them.

    Raises NotBound for a supply that was no candidate, ReplayError for a round that can't be routed again."""
    recorded = inputs_from_snapshot(row.snapshot, recorded_documents(row.snapshot))
    catalogue = live_catalogue(now)
    served = replace(catalogue.models[row.job.public_model_id], candidates=recorded.candidates)
    compiled_now = Compilations(row.job.request, served, catalogue)
    refusals = RecordedCompilations(row.snapshot, recorded, recorded.candidates, compiled_now)
    return counterfactual.why_not(replace(recorded, compile_refusals=refusals), supply)
