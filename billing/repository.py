"""The prices and exchange rates that are in force at a moment."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q, QuerySet

from billing.models import CostRuleVersion, CurrencyRateVersion
from catalog.models import Supply


def price_in_force(supply: Supply, at: datetime) -> CostRuleVersion | None:
    return _in_force(at).filter(rule__supply=supply).first()


def prices_in_force(at: datetime, supplies: Iterable[Supply] | None = None) -> dict[int, CostRuleVersion]:
    """By row id of the supply; of all supplies, or of those given."""
    versions = _in_force(at).select_related("rule")
    if supplies is not None:
        versions = versions.filter(rule__supply__in=supplies)
    return {version.rule.supply_id: version for version in versions}


def _in_force(at: datetime) -> QuerySet[CostRuleVersion]:
    not_ended = Q(effective_to=None) | Q(effective_to__gt=at)
    return CostRuleVersion.objects.filter(not_ended, effective_from__lte=at, cancelled_at=None)


def rates_in_force(currency: str, at: datetime) -> dict[str, CurrencyRateVersion]:
    """The newest rate into `currency` from each other one, by the other's code."""
    begun = CurrencyRateVersion.objects.filter(to_currency=currency, effective_from__lte=at)
    newest = begun.order_by("from_currency", "-effective_from").distinct("from_currency")
    return {rate.from_currency: rate for rate in newest}
