"""What a draft revision of a public model would have changed: the recorded selections of the last 24 hours,
routed again with the draft's bindings and policy and everything else as it was recorded. Changes nothing."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from billing.money import micros_of
from catalog.degradation import parse_rule
from catalog.exceptions import CatalogueError
from catalog.facts import BindingFacts, ModelFacts, model_facts, plain
from catalog.hashing import document_hash
from catalog.models import DegradationRule, ModelRevision
from catalog.policy import parse_policy
from catalog.repository import find_policy, policy_name, rule_facts
from dispatch.compiling import Compilations
from dispatch.drafting.reading import Draft as TypedDraft
from dispatch.live_catalogue import LiveCatalogue, rates_to, read_catalogue
from dispatch.models import SelectionRound
from dispatch.queries.recorded_versions import recorded_documents
from dispatch.recorded_compilations import RecordedCompilations
from dispatch.routing.effect import (
    Draft,
    DraftBinding,
    Effect,
    NotReplayable,
    Present,
    Replayed,
    pick,
    summed_up,
    under,
    unknown_to,
)
from dispatch.routing.replay import ReplayError, inputs_from_snapshot
from dispatch.routing.router import route
from dispatch.routing.types import Model, RoutingInput, Version

WINDOW: Final = timedelta(days=1)
MOST_ROUNDS: Final = 1_000


def replay_effect(
    draft: ModelFacts | ModelRevision | TypedDraft, now: datetime, most: int = MOST_ROUNDS
) -> Effect:
    """Over the newest `most` rounds of the jobs of the last 24 hours. See docs: the operator's console.

    Raises CatalogueError for an unknown policy or rule, and PolicyError."""
    revised = _read(draft)
    rounds = SelectionRound.objects.filter(
        job__public_model__slug=revised.model.slug, job__created_at__gt=now - WINDOW, created_at__lte=now
    )
    newest = list(rounds.select_related("job").order_by("-job__created_at", "-job_id", "-number")[:most])
    run = _Run(revised, newest, read_catalogue(now), now)
    replayed = [each for row in newest if (each := run.replayed(row)) is not None]
    return summed_up(rounds.count(), replayed, run.not_replayed)


class _Run:
    """One draft over many rounds: what they share is read once."""

    def __init__(
        self, draft: Draft, rounds: list[SelectionRound], catalogue: LiveCatalogue, now: datetime
    ) -> None:
        self.draft, self.catalogue = draft, catalogue
        self.documents = recorded_documents(*(row.snapshot for row in rounds))
        self.present = _present(draft, catalogue, now)
        self.not_replayed: Counter[str] = Counter()

    def replayed(self, row: SelectionRound) -> Replayed | None:
        """None for a round that can't be replayed; why is counted."""
        try:
            recorded = inputs_from_snapshot(row.snapshot, self.documents)
            inputs = under(recorded, self.draft, self.present)
        except (ReplayError, NotReplayable) as error:
            self.not_replayed[str(error)] += 1
            return None
        decision = route(self._compiled(inputs, recorded, row)).as_json()
        return Replayed(
            row.public_id,
            before=pick(row.snapshot["decision"], recorded.statistics),
            after=pick(decision, recorded.statistics),
            assumed=unknown_to(recorded, self.draft),
        )

    def _compiled(self, inputs: RoutingInput, recorded: RoutingInput, row: SelectionRound) -> RoutingInput:
        served = replace(self.catalogue.models[row.job.public_model_id], candidates=inputs.candidates)
        now = Compilations(row.job.request, served, self.catalogue)
        refusals = RecordedCompilations(row.snapshot, recorded, inputs.candidates, now)
        return replace(inputs, compile_refusals=refusals)


def _present(draft: Draft, catalogue: LiveCatalogue, now: datetime) -> Present:
    bound = {each.supply for each in draft.bindings}
    supplies = {slug: supply for slug, supply in catalogue.routed.items() if slug in bound}
    return Present(supplies, *rates_to(draft.policy.currency, now))


def _read(draft: ModelFacts | ModelRevision | TypedDraft) -> Draft:
    match draft:
        case ModelRevision():
            return _revised(draft)
        case TypedDraft():
            return _draft(draft.facts, draft.parameters, _rules_now(draft.facts))
        case _:
            return _drafted(draft)


def _drafted(facts: ModelFacts) -> Draft:
    """A draft that is not saved: with the policy and the rules as they are now."""
    policy = find_policy(facts.policy)
    if policy is None:
        raise CatalogueError("policy", f"no policy {facts.policy!r}; save it first")
    return _draft(replace(facts, policy=policy_name(policy)), policy.parameters, _rules_now(facts))


def _rules_now(facts: ModelFacts) -> dict[str, Any]:
    named = {binding.rule for binding in facts.bindings if binding.rule}
    return {row.slug: plain(rule_facts(row)) for row in DegradationRule.objects.filter(slug__in=named)}


def _revised(revision: ModelRevision) -> Draft:
    """A stored revision: with the policy and the rules as they were then."""
    document = revision.document
    facts = model_facts(revision.public_model.slug, document["model"])
    return _draft(facts, document["policy"], document["rules"], revision.number)


def _draft(
    facts: ModelFacts, parameters: Mapping[str, Any], rules: Mapping[str, Any], revision: int | None = None
) -> Draft:
    model = Model(
        slug=facts.slug,
        modality=facts.modality,  # type: ignore[arg-type]
        profile=facts.profile,
        degradation=facts.degradation,  # type: ignore[arg-type]
        emergency_override=facts.emergency_override,
        baseline_micros=None if facts.baseline is None else micros_of(facts.baseline),
        revision=revision,
    )
    bindings = tuple(_binding(each, index, rules) for index, each in enumerate(facts.bindings))
    version = Version(facts.policy, document_hash(parameters))
    return Draft(model, parse_policy(parameters), version, bindings)


def _binding(facts: BindingFacts, index: int, rules: Mapping[str, Any]) -> DraftBinding:
    if facts.rule and facts.rule not in rules:
        raise CatalogueError(f"bindings[{index}].rule", f"no degradation rule {facts.rule!r}; save it first")
    rule = parse_rule(rules[facts.rule]) if facts.rule else None
    return DraftBinding(facts.supply, facts.tier, facts.priority, facts.enabled, rule)  # type: ignore[arg-type]
