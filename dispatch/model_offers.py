"""What each permitted model would do with a request of routing mode `auto`, and the record of the choice.

Everything is looked at without a lock: an offer reserves nothing, and the job that is bound to the chosen
model is selected for like any other."""

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from billing.pricing import Ratio
from dispatch.compiling import Compilations
from dispatch.live_catalogue import ServedModel, live_catalogue, rates_to
from dispatch.models import Job, SelectionCount
from dispatch.routing.auto import Choice, Offer, choose
from dispatch.routing.router import route
from dispatch.routing.types import Decision
from dispatch.selecting import inputs_for, is_hopeless
from dispatch.selection_facts import SelectionFacts, glance

SCHEMA = 1


def choose_model(
    drafts: Mapping[str, Job], refused: Mapping[str, str], currency: str, now: datetime
) -> tuple[Choice | None, dict[str, Any]]:
    """The choice among `drafts` (unsaved jobs by slug of their model), and its document for the record.

    None where nobody drafted anything. `refused`: why other permitted models can't take the request at all,
    by slug. Costs are compared in `currency`."""
    if not drafts:
        return None, {}
    catalogue = live_catalogue(now)
    served = {slug: catalogue.models[job.public_model_id] for slug, job in drafts.items()}
    contents = {job.content_fingerprint for job in drafts.values() if job.content_fingerprint}
    facts = glance(catalogue, served.values(), now, contents)
    decisions = {slug: _decision(job, served[slug], facts, now) for slug, job in drafts.items()}
    rates, _ = rates_to(currency, now)
    offers = [_offer(served[slug], decision, currency, rates) for slug, decision in decisions.items()]
    choice = choose(offers)
    return choice, _document(choice, offers, decisions, served, refused, currency, now)


def _decision(job: Job, served: ServedModel, facts: SelectionFacts, now: datetime) -> Decision:
    count = SelectionCount.objects.filter(public_model=job.public_model_id).first()
    compilations = Compilations(job.request, served, facts.catalogue)
    return route(inputs_for(job, served, facts, (count.number if count else 0) + 1, compilations, now))


def _offer(served: ServedModel, decision: Decision, currency: str, rates: Mapping[str, Ratio]) -> Offer:
    slug = served.model.slug
    if decision.chosen is None:
        return Offer(slug, decision.outcome, waits=not is_hopeless(decision))
    micros = decision.ranking[0].expected_cost
    rate = Fraction(1) if served.policy.currency == currency else _rate(rates.get(served.policy.currency))
    cost = None if micros is None or rate is None else micros * rate
    return Offer(slug, decision.outcome, decision.chosen.tier, cost)


def _rate(ratio: Ratio | None) -> Fraction | None:
    return None if ratio is None else Fraction(*ratio)


def _document(
    choice: Choice | None,
    offers: list[Offer],
    decisions: Mapping[str, Decision],
    served: Mapping[str, ServedModel],
    refused: Mapping[str, str],
    currency: str,
    now: datetime,
) -> dict[str, Any]:
    """Kept with the job: every model's decision whole, in the form of `manage.py explain --json`."""
    of = {offer.slug: offer for offer in offers}
    made = {
        slug: {
            "revision": served[slug].model.revision,
            "policy": served[slug].policy_version.id,
            "waits": of[slug].waits,
            "expected_cost": _written(of[slug].expected_cost),
            "decision": decision.as_json(),
        }
        for slug, decision in decisions.items()
    }
    return {
        "schema": SCHEMA,
        "at": now.isoformat(),
        "currency": currency,
        "chosen": choice and choice.slug,
        "why": choice and choice.why,
        "models": {slug: made.get(slug) or {"refused": refused[slug]} for slug in sorted({*made, *refused})},
    }


def _written(cost: Fraction | None) -> str | None:
    """Micros as an exact ratio, since that is what was compared."""
    return None if cost is None else str(cost)
