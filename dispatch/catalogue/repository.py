"""Stored rows as the entries of a catalogue document, with every default written out."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from billing.models import CostRuleVersion, CurrencyRateVersion, CustomerGroup
from billing.money import written
from billing.repository import prices_in_force
from catalog.facts import (
    BindingFacts,
    ChannelFacts,
    ModelFacts,
    SupplyFacts,
    in_order,
    plain,
    policy_parameters,
)
from catalog.models import (
    CapacityGroup,
    Channel,
    DegradationRule,
    DispatchPolicy,
    PublicModel,
    Supply,
    SupplyBinding,
)
from catalog.repository import channel_facts, policy_name, rule_facts, supply_facts
from dispatch.catalogue.document import Entry, schema, shortest

ENVIRONMENT = "env:"  # how a channel's credential_reference begins


def stored_entries(now: datetime) -> Entry:
    """The whole catalogue as it is in force at `now`, in the form of `Document.entries`."""
    prices = prices_in_force(now)
    return {
        "version": 1,
        "customer_groups": {row.slug: {"name": row.name} for row in CustomerGroup.objects.order_by("slug")},
        "currency_rates": list(_rates_in_force(now)),
        "channels": {row.slug: _channel_entry(row) for row in Channel.objects.order_by("slug")},
        "capacity_groups": [_group_entry(row) for row in _groups_in_use()],
        "supplies": {row.slug: _supply_entry(row, prices.get(row.pk)) for row in _supplies()},
        "policies": dict(_policy_entries()),
        "degradation_rules": {
            row.slug: _in_schema_order("rule", plain(rule_facts(row)))
            for row in DegradationRule.objects.order_by("slug")
        },
        "public_models": {row.slug: _model_entry(row) for row in _models()},
    }


def saved_model_facts(row: PublicModel) -> ModelFacts:
    """Reads the row's policy and bindings; the policy with its version, whether newest or not."""
    bindings = row.bindings.select_related("supply", "degradation_rule")
    return ModelFacts(
        slug=row.slug,
        modality=row.modality,
        display_name=row.display_name,
        parameters=row.parameters,
        policy=policy_name(row.policy),
        profile=row.profile,
        disclosure=row.disclosure,
        example_requests=tuple(row.example_requests),
        degradation=row.degradation,
        emergency_override=row.emergency_override,
        baseline=None if row.baseline_micros is None else written(row.baseline_micros),
        refusal_isolation=row.refusal_isolation,
        price=row.price,
        allowed_groups=tuple(row.allowed_groups),
        bindings=in_order(_binding_facts(binding) for binding in bindings),
    )


def channel_from(slug: str, entry: Entry) -> ChannelFacts:
    return ChannelFacts(slug=slug, **{name: value for name, value in entry.items() if name != "credential"})


def supply_from(slug: str, entry: Entry) -> SupplyFacts:
    facts = {name: value for name, value in entry.items() if name not in ("capability", "price")}
    return SupplyFacts(slug=slug, **facts)


def _channel_entry(row: Channel) -> Entry:
    entry = plain(channel_facts(row))
    if row.credential_reference.startswith(ENVIRONMENT):
        entry["credential"] = {"env": row.credential_reference.removeprefix(ENVIRONMENT)}
    return _in_schema_order("channel", entry)


def _groups_in_use() -> Any:
    return CapacityGroup.objects.filter(channels__isnull=False).distinct().order_by("endpoint", "account")


def _group_entry(row: CapacityGroup) -> Entry:
    return {"endpoint": row.endpoint, "account": row.account, "capacity": row.capacity}


def _supplies() -> Any:
    return Supply.objects.select_related("channel", "capability_version").order_by("slug")


def _supply_entry(row: Supply, price: CostRuleVersion | None) -> Entry:
    version = row.capability_version
    entry = plain(supply_facts(row))
    entry["capability"] = {"label": version.label, "document": version.document} if version else None
    entry["price"] = price.document if price else None
    return _in_schema_order("supply", entry)


def _rates_in_force(now: datetime) -> Iterator[Entry]:
    rows = CurrencyRateVersion.objects.filter(effective_from__lte=now)
    rows = rows.order_by("from_currency", "to_currency", "-effective_from")
    for row in rows.distinct("from_currency", "to_currency"):
        yield {"from": row.from_currency, "to": row.to_currency, "rate": shortest(row.rate)}


def _newest_policies() -> dict[str, int]:
    rows = DispatchPolicy.objects.order_by("slug", "-version").distinct("slug")
    return dict(rows.values_list("slug", "version"))


def _policy_entries() -> Iterator[tuple[str, Entry]]:
    """The newest version of each slug, and the older ones that a model still uses."""
    newest = _newest_policies()
    for row in DispatchPolicy.objects.order_by("slug", "version"):
        if row.version == newest[row.slug]:
            yield row.slug, policy_parameters(row.parameters)
        elif row.public_models.exists():
            yield policy_name(row), policy_parameters(row.parameters)


def _models() -> Any:
    return PublicModel.objects.select_related("policy").order_by("slug")


def _model_entry(row: PublicModel) -> Entry:
    entry = plain(saved_model_facts(row))
    newest = DispatchPolicy.objects.filter(slug=row.policy.slug).order_by("-version").first()
    if newest == row.policy:
        entry["policy"] = row.policy.slug
    entry["publish"] = row.published
    return _in_schema_order("model", entry)


def _binding_facts(row: SupplyBinding) -> BindingFacts:
    return BindingFacts(
        supply=row.supply.slug,
        tier=row.tier,
        priority=row.priority,
        enabled=row.enabled,
        rule=row.degradation_rule.slug if row.degradation_rule else None,
    )


def _in_schema_order(kind: str, entry: Entry) -> Entry:
    return {name: entry[name] for name in schema()["$defs"][kind]["properties"] if name in entry}
