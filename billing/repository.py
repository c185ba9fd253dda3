"""The prices and exchange rates that are in force at a moment, and the next version of a price."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Max, Q, QuerySet

from billing.models import CostRule, CostRuleVersion, CurrencyRateVersion
from catalog.hashing import document_hash
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


def add_version(
    rule: CostRule,
    document: Mapping[str, Any],
    *,
    start: datetime,
    end: datetime | None,
    by: str,
    now: datetime,
) -> CostRuleVersion:
    """In force from `start` to `end`, under the next number. The caller holds the catalogue's revision, so
    that nobody else takes the number."""
    latest = rule.versions.aggregate(number=Max("number"))["number"] or 0
    return CostRuleVersion.objects.create(
        rule=rule,
        number=latest + 1,
        mode=document["mode"],
        currency=document["currency"],
        document=document,
        document_hash=document_hash(document),
        effective_from=start,
        effective_to=end,
        published_by=by,
        published_at=now,
    )
