"""What supplies charge: versions past, in force and to come, and what a version does to known requests."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q

from billing.models import CostRuleVersion
from billing.pricing import Price, parse_price, quote_micros
from catalog.document import DocumentError
from catalog.models import PublicModel, Supply, SupplyBinding
from catalog.shape import Shape, shape_of
from dispatch.gate_evidence import examples_of
from dispatch.models import Attempt
from dispatch.queries.places import supplies_now

RECOSTED_DAYS: Final = 7
RECOSTED_ATTEMPTS: Final = 200


@dataclass(frozen=True, slots=True)
class ExampleName:
    """One of the example requests of a public model, counted from 1."""

    model: str
    number: int


@dataclass(frozen=True, slots=True)
class PriceLine:
    """One supply. `typical_micros`: of the first example of a model that it serves; None without a price."""

    supply: Supply
    in_force: CostRuleVersion | None
    planned: CostRuleVersion | None
    typical: ExampleName | None
    typical_micros: int | None

    @property
    def ends_at(self) -> datetime | None:
        """From when on there is no price, where that is known."""
        last = self.planned or self.in_force
        return last.effective_to if last else None


def state_of(version: CostRuleVersion, now: datetime) -> str:
    """past, in_force, scheduled, cancelled."""
    if version.cancelled_at:
        return "cancelled"
    if version.effective_from > now:
        return "scheduled"
    return "past" if version.effective_to and version.effective_to <= now else "in_force"


def price_list(now: datetime, with_retired: bool = False) -> list[PriceLine]:
    """By slug. A retired supply (off, and bound nowhere) has its page all the same."""
    supplies = [each.row for each in supplies_now(with_retired=with_retired)]
    current = CostRuleVersion.objects.filter(
        Q(effective_to=None) | Q(effective_to__gt=now), cancelled_at=None
    ).select_related("rule")
    versions: dict[int, list[CostRuleVersion]] = defaultdict(list)
    for version in current.order_by("effective_from"):
        versions[version.rule.supply_id].append(version)
    served = _served_by(None)
    return [_line(supply, versions[supply.pk], served.get(supply.pk, []), now) for supply in supplies]


def _line(
    supply: Supply, versions: Sequence[CostRuleVersion], models: Sequence[PublicModel], now: datetime
) -> PriceLine:
    in_force = next((each for each in versions if state_of(each, now) == "in_force"), None)
    planned = next((each for each in versions if state_of(each, now) == "scheduled"), None)
    shown = in_force or planned
    example = next((told for model in models for told in _examples(model)), None)
    micros = quoted(shown.document, supply.modality, example[1]) if shown and example else None
    return PriceLine(supply, in_force, planned, example[0] if example else None, micros)


def versions_of(supply: Supply) -> list[CostRuleVersion]:
    """The newest first."""
    return list(CostRuleVersion.objects.filter(rule__supply=supply).order_by("-number"))


def find_supply(slug: str) -> Supply | None:
    return Supply.objects.select_related("channel").filter(slug=slug).first()


@dataclass(frozen=True, slots=True)
class ExamplePrice:
    """What an example request of a public model costs by each document; None: no price."""

    name: ExampleName
    before_micros: int | None
    after_micros: int | None


def example_prices(
    supply: Supply, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[ExamplePrice]:
    """Of the models that are served by it, whatever their state."""
    return [
        ExamplePrice(
            name,
            quoted(before, supply.modality, shape),
            quoted(after, supply.modality, shape),
        )
        for model in _served_by(supply).get(supply.pk, [])
        for name, shape in _examples(model)
    ]


def _served_by(supply: Supply | None) -> Mapping[int, list[PublicModel]]:
    bindings = SupplyBinding.objects.select_related("public_model").order_by("public_model__slug", "pk")
    found: dict[int, dict[int, PublicModel]] = defaultdict(dict)
    for binding in bindings.filter(supply=supply) if supply else bindings:
        found[binding.supply_id][binding.public_model_id] = binding.public_model
    return {key: list(models.values()) for key, models in found.items()}


def _examples(model: PublicModel) -> list[tuple[ExampleName, Shape]]:
    return [
        (ExampleName(model.slug, number), example.shape)
        for number, (example, _request) in enumerate(examples_of(model), start=1)
        if example.shape is not None
    ]


def is_same_price(one: Mapping[str, Any], other: Mapping[str, Any], modality: str) -> bool:
    """Whether both are executed, and alike."""
    price = _parsed(one, modality)
    return price is not None and price == _parsed(other, modality)


def quoted(document: Mapping[str, Any] | None, modality: str, shape: Shape) -> int | None:
    """Micros of the document's own currency."""
    price = _parsed(document, modality)
    return quote_micros(price, shape) if price else None


def _parsed(document: Mapping[str, Any] | None, modality: str) -> Price | None:
    try:
        return parse_price(document, modality) if document else None
    except DocumentError:
        return None


@dataclass(frozen=True, slots=True)
class Recosted:
    """The newest attempts of a week by two documents, in the documents' own currencies. `unpriced`: how many
    of them the new one has no price for; these are left out of both sums."""

    attempts: int
    delivered: int
    unpriced: int
    before_micros: int
    after_micros: int

    @property
    def before_per_success(self) -> int | None:
        return self.before_micros // self.delivered if self.delivered else None

    @property
    def after_per_success(self) -> int | None:
        return self.after_micros // self.delivered if self.delivered else None


def recosted(
    supply: Supply, before: Mapping[str, Any] | None, after: Mapping[str, Any], now: datetime
) -> Recosted:
    """An estimate of the first order: who would have been selected is not asked anew."""
    old, new = _parsed(before, supply.modality), _parsed(after, supply.modality)
    since = now - timedelta(days=RECOSTED_DAYS)
    ended = Attempt.objects.filter(supply=supply, finished_at__gte=since).order_by("-finished_at")
    told = list(
        ended.values_list("state", "sent_request", "job__request", "job__modality")[:RECOSTED_ATTEMPTS]
    )
    delivered = unpriced = before_micros = after_micros = 0
    for state, sent, asked, modality in told:
        shape = shape_of(modality, sent or asked)
        was, is_now = (quote_micros(price, shape) if price else None for price in (old, new))
        if is_now is None:
            unpriced += 1
            continue
        delivered += state == "succeeded"
        if _is_charged(state, old):
            before_micros += was or 0
        if _is_charged(state, new):
            after_micros += is_now
    return Recosted(len(told), delivered, unpriced, before_micros, after_micros)


def _is_charged(state: str, price: Price | None) -> bool:
    return state in ("succeeded", "abandoned") or (price is not None and not price.free_on_failure)
