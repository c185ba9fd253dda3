"""The catalogue in memory: read once for each revision, immutable, shared by all selections of a process.

Every transaction that changes the catalogue bumps its revision number; prices that begin later end the
copy's validity at that moment. So a selection asks one query for the number, and none for each candidate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from billing.models import CostMode, CostRuleVersion, CurrencyRateVersion
from billing.pricing import Price, Ratio, parse_price
from billing.repository import prices_in_force, rates_in_force
from catalog.capability import parse_capability
from catalog.models import CapacityGroup, PublicModel, RefusalIsolation, Supply, SupplyBinding
from catalog.policy import Policy
from catalog.providers.types import SupplyTarget
from catalog.repository import rule_of
from catalog.revision import current_revision
from dispatch.capacity import Place
from dispatch.routing import types as routing
from health.memory import place_of
from health.refusals import Place as RefusalPlace

type Rates = tuple[dict[str, Ratio], dict[str, str]]  # and their versions, by the other currency


@dataclass(frozen=True, slots=True)
class SupplyFacts:
    """What a selection needs of a supply beyond routing: row ids, and what its adapter compiles for."""

    supply_id: int
    place: Place
    provider: str
    target: SupplyTarget
    capability_version_id: int
    cost_rule_version_id: int | None
    refusal_place: RefusalPlace

    def price_in_force(self) -> int:
        """The row of the price that a chosen supply was quoted by. Raises LookupError without one."""
        if self.cost_rule_version_id is None:
            raise LookupError(f"supply {self.supply_id} has no price in force and can't have been quoted")
        return self.cost_rule_version_id


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One public model with its candidates, whether or not it is open for selection now."""

    model: routing.Model
    is_open: bool
    policy: Policy
    policy_id: int
    policy_version: routing.Version
    candidates: tuple[routing.Candidate, ...]
    rates: Mapping[str, Ratio]
    rate_versions: Mapping[str, str]
    closes_on_refusal: bool = False  # content that one supply refused goes to no other of this model


@dataclass(frozen=True)
class LiveCatalogue:
    revision: int
    valid_until: datetime | None
    models: Mapping[int, ServedModel]  # by row id of the public model
    public: Mapping[str, PublicModel]  # their rows with their policies, by slug; nobody's to change
    supplies: Mapping[str, SupplyFacts] = field(repr=False)  # by slug
    routed: Mapping[str, routing.Supply] = field(repr=False)  # by slug, bound or not


_kept: list[LiveCatalogue] = []


def live_catalogue(now: datetime) -> LiveCatalogue:
    """The copy of the present revision; read anew only where the number or the clock says so."""
    revision = current_revision()
    kept = next(iter(_kept), None)  # once: another thread may put its own in the place meanwhile
    if kept is not None and kept.revision == revision and not _is_over(kept, now):
        return kept
    fresh = _read(revision, now)
    _kept[:] = [fresh]
    return fresh


def read_catalogue(now: datetime) -> LiveCatalogue:
    """A copy that is not kept: for a moment that has passed, or for a look inside a transaction that changes
    the catalogue and may yet fail, whose revision number the next change would get again."""
    return _read(current_revision(), now)


def _is_over(catalogue: LiveCatalogue, now: datetime) -> bool:
    return catalogue.valid_until is not None and now >= catalogue.valid_until


def _read(revision: int, now: datetime) -> LiveCatalogue:
    prices = prices_in_force(now)
    groups = {
        group.pk: routing.Group(group.public_id, group.capacity) for group in CapacityGroup.objects.all()
    }
    rows = _supply_rows()
    supplies = _supplies(rows, groups, prices)
    facts = {row.slug: _facts(row, prices) for row in rows}
    bindings = SupplyBinding.objects.select_related("supply", "degradation_rule").order_by(
        "public_model_id", "pk"
    )
    by_model = {
        key: list(bound) for key, bound in groupby(bindings, key=lambda binding: binding.public_model_id)
    }
    public = list(PublicModel.objects.select_related("policy"))
    currencies = {model.policy.parsed.currency for model in public}
    rates = {currency: rates_to(currency, now) for currency in currencies}
    models = {model.pk: _served(model, by_model.get(model.pk, []), supplies, rates) for model in public}
    routed = {supply.id: supply for supply in supplies.values()}
    by_slug = {model.slug: model for model in public}
    return LiveCatalogue(revision, _next_change(now), models, by_slug, facts, routed)


def _supply_rows() -> list[Supply]:
    return list(
        Supply.objects.select_related("channel", "capability_version", "cost_rule").exclude(
            capability_version=None
        )
    )


def _next_change(now: datetime) -> datetime | None:
    prices = CostRuleVersion.objects.filter(effective_from__gt=now, cancelled_at=None)
    price = prices.order_by("effective_from").first()
    rate = CurrencyRateVersion.objects.filter(effective_from__gt=now).order_by("effective_from").first()
    return min((row.effective_from for row in (price, rate) if row is not None), default=None)


def _supplies(
    rows: list[Supply], groups: Mapping[int, routing.Group], prices: Mapping[int, CostRuleVersion]
) -> dict[int, routing.Supply]:
    channels: dict[int, routing.Channel] = {}
    supplies = {}
    for row in rows:
        channel = channels.setdefault(row.channel_id, _channel(row, groups))
        supplies[row.pk] = _supply(row, channel, prices.get(row.pk))
    return supplies


def _channel(row: Supply, groups: Mapping[int, routing.Group]) -> routing.Channel:
    channel = row.channel
    return routing.Channel(
        id=channel.slug,
        capacity=channel.concurrency,
        unknown_limit=_unknown_limit(channel.unknown_limit, channel.concurrency),
        state=channel.state,  # type: ignore[arg-type]
        group=groups[channel.capacity_group_id] if channel.capacity_group_id else None,
        region=channel.region,
    )


def _supply(row: Supply, channel: routing.Channel, price: CostRuleVersion | None) -> routing.Supply:
    assert row.capability_version is not None  # noqa: S101 - _supply_rows leaves the others out
    return routing.Supply(
        id=row.slug,
        channel=channel,
        capacity=row.concurrency,
        unknown_limit=_unknown_limit(row.unknown_limit, row.concurrency),
        capability=parse_capability(row.modality, row.capability_version.document),
        capability_version=routing.Version(
            row.capability_version.public_id, row.capability_version.document_hash
        ),
        price=_price(row, price),
        price_version=None if price is None else routing.Version(price.public_id, price.document_hash),
        state=row.state,  # type: ignore[arg-type]
        real_person=row.real_person_policy or "allowed",  # type: ignore[arg-type]
    )


def _unknown_limit(configured: int | None, capacity: int) -> int:
    return routing.default_unknown_limit(capacity) if configured is None else configured


def _price(row: Supply, version: CostRuleVersion | None) -> Price | None:
    """None too for a mode that is stored for the books and never executed."""
    if version is None or version.mode == CostMode.PER_TOKEN:
        return None
    return parse_price(version.document, row.modality)


def _facts(row: Supply, prices: Mapping[int, CostRuleVersion]) -> SupplyFacts:
    price = prices.get(row.pk)
    assert row.capability_version_id is not None  # noqa: S101
    return SupplyFacts(
        supply_id=row.pk,
        place=Place(row.channel_id, row.pk, row.channel.capacity_group_id),
        provider=row.channel.provider,
        target=SupplyTarget(
            row.provider_model,
            row.model_version,
            row.capability_version.document,  # type: ignore[union-attr]
            row.modality,
        ),
        capability_version_id=row.capability_version_id,
        cost_rule_version_id=None if price is None else price.pk,
        refusal_place=place_of(row),
    )


def _served(
    model: PublicModel,
    bindings: list[SupplyBinding],
    supplies: Mapping[int, routing.Supply],
    rates: Mapping[str, Rates],
) -> ServedModel:
    bound = [binding for binding in bindings if binding.supply_id in supplies]
    keys = routing.candidate_keys((binding.supply.slug, binding.tier) for binding in bound)  # type: ignore[misc]
    policy = model.policy.parsed
    of_currency, rate_versions = rates[policy.currency]
    return ServedModel(
        model=routing.Model(
            slug=model.slug,
            modality=model.modality,  # type: ignore[arg-type]
            profile=model.profile,
            degradation=model.degradation,  # type: ignore[arg-type]
            emergency_override=model.emergency_override,
            baseline_micros=model.baseline_micros,
            revision=model.revision,
        ),
        is_open=model.enabled and model.published,
        policy=policy,
        policy_id=model.policy_id,
        policy_version=routing.Version(model.policy.public_id, model.policy.parameters_hash()),
        candidates=tuple(_candidate(binding, supplies[binding.supply_id], keys) for binding in bound),
        rates=of_currency,
        rate_versions=rate_versions,
        closes_on_refusal=model.refusal_isolation == RefusalIsolation.MODEL,
    )


def _candidate(
    binding: SupplyBinding, supply: routing.Supply, keys: Mapping[tuple[str, Any], str]
) -> routing.Candidate:
    return routing.Candidate(
        key=keys[binding.supply.slug, binding.tier],
        supply=supply,
        tier=binding.tier,  # type: ignore[arg-type]
        priority=binding.priority,
        enabled=binding.enabled,
        rule=rule_of(binding),
    )


def rates_to(currency: str, now: datetime) -> Rates:
    """Units of `currency` for one unit of each other that has a rate in force, and the rates' ids."""
    newest = rates_in_force(currency, now)
    rates = {code: version.rate.as_integer_ratio() for code, version in newest.items()}
    return rates, {code: version.public_id for code, version in newest.items()}
