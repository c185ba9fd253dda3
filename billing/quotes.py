"""What a request costs at supplies by the cost rules and exchange rates in force at a moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from billing.models import CostRuleVersion, CurrencyRateVersion
from billing.pricing import Quote, parse_price, quote
from billing.repository import prices_in_force, rates_in_force
from catalog.document import DocumentError
from catalog.models import Supply
from catalog.shape import Shape


@dataclass(frozen=True, slots=True)
class SupplyQuote:
    """A quote and the versions that it was made by; without one, why not."""

    supply: str  # slug
    quote: Quote | None
    cost_rule_version: str | None = None  # public ids
    rate_version: str | None = None
    missing: str = ""

    def as_json(self) -> dict[str, Any]:
        quoted = self.quote
        return {
            "supply": self.supply,
            "micros": quoted and quoted.micros,
            "currency": quoted and quoted.currency,
            "native_micros": quoted and quoted.native_micros,
            "native_currency": quoted and quoted.native_currency,
            "cost_rule_version": self.cost_rule_version,
            "rate_version": self.rate_version,
            "missing": self.missing,
        }


def quotes(supplies: Iterable[Supply], shape: Shape, currency: str, at: datetime) -> list[SupplyQuote]:
    """In the order of the supplies, whatever their state: a quote asks nobody whether he is free."""
    listed = list(supplies)
    versions = prices_in_force(at, listed)
    rates = rates_in_force(currency, at)
    return [_quoted(supply, versions.get(supply.pk), shape, currency, rates) for supply in listed]


def _quoted(
    supply: Supply,
    version: CostRuleVersion | None,
    shape: Shape,
    currency: str,
    rates: Mapping[str, CurrencyRateVersion],
) -> SupplyQuote:
    if version is None:
        return SupplyQuote(supply.slug, None, missing="no cost rule is in force")
    try:
        price = parse_price(version.document, supply.modality)
    except DocumentError as error:
        return SupplyQuote(supply.slug, None, version.public_id, missing=str(error))
    ratios = {code: rate.rate.as_integer_ratio() for code, rate in rates.items()}
    if price.currency != currency and price.currency not in ratios:
        return SupplyQuote(
            supply.slug, None, version.public_id, missing=f"no rate from {price.currency} to {currency}"
        )
    quoted = quote(price, shape, currency, ratios)
    missing = "" if quoted else "the cost rule has no price for this request"
    rate = None if price.currency == currency else rates[price.currency].public_id
    return SupplyQuote(supply.slug, quoted, version.public_id, rate, missing)
