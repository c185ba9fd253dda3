"""An explanation as plain text, for the command line."""

from collections.abc import Iterator

from billing.money import written
from dispatch.routing.explain import Explanation, Place, Removal, Step


def rendered(explanation: Explanation) -> str:
    """Lines of text, the last one ended."""
    return "".join(f"{line}\n" for line in _lines(explanation))


def _lines(it: Explanation) -> Iterator[str]:
    yield f"{it.model}: {it.sentence}{_choice(it)}"
    if it.degradation:
        profiles = f"{it.degradation['requested_profile']} → {it.degradation['actual_profile']}"
        yield f"Degraded: {profiles}, drops {', '.join(it.degradation['dropped_inputs']) or 'nothing'}"
    if it.alerts:
        yield f"Alerts: {', '.join(it.alerts)}"
    for step in it.steps:
        yield ""
        yield from _step(step)
    if it.places:
        yield ""
        yield from (_place(place, it.currency) for place in it.places)
    yield ""
    yield f"{it.selected} selected + {it.ranked} ranked + {it.excluded} excluded = {it.candidates} candidates"


def _choice(it: Explanation) -> str:
    if it.chosen:
        return f" {it.chosen}, tier {it.tier}"
    return f" Layer {it.tier}" if it.tier else ""


def _step(step: Step) -> Iterator[str]:
    yield f"{step.number}. {step.title}: {len(step.removed)} removed, {len(step.remained)} remain"
    yield from (f"   {note}" for note in step.notes)
    yield from (f"   − {_removal(removal)}" for removal in step.removed)


def _removal(it: Removal) -> str:
    details = f" ({it.details})" if it.details else ""
    return f"{it.candidate}  {it.reason}: {it.sentence}{details}"


def _place(it: Place, currency: str) -> str:
    lost = f"  behind by {it.lost_by}" if it.lost_by else ""
    return (
        f"{it.position}. {it.candidate}  {it.health}, band {it.band}, {it.free} free,"
        f" quote {written(it.quote_micros)} {currency}, expected {written(it.expected_cost_micros)}{lost}"
    )
