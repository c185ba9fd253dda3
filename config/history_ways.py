"""Which ways a job can have taken through the catalogue that is there: each public model on each supply that
the router would have chosen, with the evidence that it writes. Stores nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from catalog.capability import parse_capability
from catalog.document import DocumentError
from catalog.hashing import document_hash
from catalog.models import PublicModel
from dispatch.compiling import Compilations
from dispatch.errors import InvalidRequest
from dispatch.gate_evidence import as_posted
from dispatch.live_catalogue import LiveCatalogue, ServedModel, live_catalogue
from dispatch.queries.drafts import stored_version
from dispatch.requests import defaults_of, normalized
from dispatch.routing.router import route
from dispatch.routing.snapshot import snapshot
from dispatch.routing.supposed import Supposition, supposed
from dispatch.routing.types import Decision, RoutingInput
from dispatch.supposing import supposed_inputs, supposed_model, typical_request

type Request = Mapping[str, Any]

_FILM = "https://example.com/input.mp4"
_LESS_OFTEN = 0.5  # each candidate than the one before it, each model than the one before it
_LOSSY_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Way:
    """One selection and what its attempt was made of. `after`: place in the list of the way that failed
    before; None for a first attempt, of which `weight` says how often it was taken."""

    after: int | None
    weight: float
    public_model_id: int
    model_revision: int
    modality: str
    policy_id: int
    request: Request
    request_hash: str
    requested_profile: str
    actual_profile: str
    dropped_inputs: tuple[str, ...]
    supply_id: int
    channel_id: int
    group_id: int | None
    tier: str
    capability_version_id: int
    cost_rule_version_id: int
    sent_request: Request | None
    compile_plan: Mapping[str, Any]
    quote_micros: int
    quote_currency: str
    snapshot: Mapping[str, Any]


def ways_of(now: datetime) -> list[Way]:
    """Of every public model that some supply can execute."""
    catalogue, found = live_catalogue(now), list[Way]()
    for number, row in enumerate(PublicModel.objects.select_related("policy").order_by("pk")):
        for request, share in _requests(row):
            maker = _Maker(row, request, catalogue, now)
            found += maker.ways(len(found), share * _LESS_OFTEN**number)
    return found


def _requests(model: PublicModel) -> Iterator[tuple[Request, float]]:
    """What customers mostly ask for, and what only a lesser supply may be left for."""
    if usual := typical_request(model):
        yield usual, 1.0
    if model.modality == "video" and model.degradation == "best_effort" and (lossy := _lossy_request(model)):
        yield lossy, _LOSSY_SHARE


def _lossy_request(model: PublicModel) -> Request | None:
    body = {"prompt": "In the manner of this film", "reference_videos": [_FILM], "degradation": "best_effort"}
    try:
        limits = parse_capability(model.modality, model.parameters)
        return normalized(
            model.modality, as_posted(body), limits, model.degradation, defaults_of(model.parameters)
        )
    except (InvalidRequest, DocumentError):
        return None


class _Maker:
    """The ways of one request of one model."""

    def __init__(self, row: PublicModel, request: Request, catalogue: LiveCatalogue, now: datetime) -> None:
        version = stored_version(row)
        self._row, self._request, self._catalogue = row, request, catalogue
        self._model: ServedModel = supposed_model(row, version.facts, version.parameters, catalogue, now)
        self._compilations = Compilations(request, self._model, catalogue)
        self._inputs = replace(
            supposed_inputs(self._model, catalogue, request, now),
            compile_refusals=self._compilations,
            request_hash=document_hash(request),
        )

    def ways(self, place: int, weight: float) -> list[Way]:
        """First attempts, then one second attempt for each of them that has another supply left."""
        keys = [candidate.key for candidate in self._inputs.candidates]
        taken = [(key, way) for key in keys if (way := self._way(self._inputs, key, weight, None))]
        firsts = [replace(way, weight=weight * _LESS_OFTEN**number) for number, (_, way) in enumerate(taken)]
        return firsts + [
            second
            for number, (key, _) in enumerate(taken)
            if (second := self._second(key, keys, place + number))
        ]

    def _second(self, failed: str, keys: list[str], after: int) -> Way | None:
        tried = next(it.supply.id for it in self._inputs.candidates if it.key == failed)
        job = replace(self._inputs.job, tried=frozenset({tried}), attempt=2)
        inputs = replace(self._inputs, job=job)
        others = (self._way(inputs, key, 0, after) for key in keys if key != failed)
        return next(filter(None, others), None)

    def _way(self, inputs: RoutingInput, key: str, weight: float, after: int | None) -> Way | None:
        """As if every other candidate had been out of service; None where the router would not choose it."""
        told = [
            Supposition(it.key, health="healthy", free=2)
            if it.key == key
            else Supposition(it.key, health="circuit_open")
            for it in sorted(inputs.candidates, key=lambda it: it.key == key)
        ]
        changed = supposed(inputs, told)
        decision = route(changed)
        chosen = decision.chosen
        if chosen is None or chosen.key != key:
            return None
        return self._made(changed, decision, weight, after)

    def _made(self, inputs: RoutingInput, decision: Decision, weight: float, after: int | None) -> Way:
        finding, lost = decision.ranking[0], decision.degradation
        key, supply = finding.candidate.key, self._catalogue.supplies[finding.candidate.supply.id]
        return Way(
            after=after,
            weight=weight,
            public_model_id=self._row.pk,
            model_revision=self._row.revision,
            modality=self._row.modality,
            policy_id=self._row.policy_id,
            request=self._request,
            request_hash=inputs.request_hash,
            requested_profile=self._row.profile,
            actual_profile=lost.actual_profile if lost else self._row.profile,
            dropped_inputs=lost.dropped_inputs if lost else (),
            supply_id=supply.supply_id,
            channel_id=supply.place.channel_id,
            group_id=supply.place.group_id,
            tier=finding.candidate.tier,
            capability_version_id=supply.capability_version_id,
            cost_rule_version_id=supply.price_in_force(),
            sent_request=self._compilations.transformed_request(key),
            compile_plan=self._compilations.plan(key).as_json(),
            quote_micros=finding.quote or 0,
            quote_currency=self._model.policy.currency,
            snapshot=snapshot(inputs, decision),
        )
