"""Rows of the catalogue as facts and rules."""

from catalog.degradation import Rule
from catalog.facts import ChannelFacts, RuleFacts, SupplyFacts
from catalog.models import Channel, DegradationRule, DispatchPolicy, Supply, SupplyBinding


def channel_facts(row: Channel) -> ChannelFacts:
    return ChannelFacts(
        slug=row.slug,
        provider=row.provider,
        base_url=row.base_url,
        concurrency=row.concurrency,
        region=row.region,
        account=row.account,
        unknown_limit=row.unknown_limit,
        state=row.state,
        config=row.config,
        credential_expires=row.credential_expires_on.isoformat() if row.credential_expires_on else None,
    )


def supply_facts(row: Supply) -> SupplyFacts:
    """Reads the row's channel."""
    return SupplyFacts(
        slug=row.slug,
        channel=row.channel.slug,
        modality=row.modality,
        provider_model=row.provider_model,
        model_family=row.model_family,
        concurrency=row.concurrency,
        model_version=row.model_version,
        unknown_limit=row.unknown_limit,
        state=row.state,
        real_person_policy=row.real_person_policy or None,
        lifecycle=row.lifecycle,
        sunset=row.sunset_on.isoformat() if row.sunset_on else None,
    )


def rule_facts(row: DegradationRule) -> RuleFacts:
    return RuleFacts(
        slug=row.slug,
        from_profile=row.from_profile,
        to_profile=row.to_profile,
        drop_inputs=tuple(row.drop_inputs),
        verified=row.verified_at is not None,
        published=row.published_at is not None,
    )


def rule_of(binding: SupplyBinding) -> Rule | None:
    """What a degraded binding drops; None in the other tiers."""
    row = binding.degradation_rule
    if row is None:
        return None
    return Rule(
        from_profile=row.from_profile,
        to_profile=row.to_profile,
        drop_inputs=tuple(row.drop_inputs),
        verified=row.verified_at is not None,
        published=row.published_at is not None,
    )


def policy_name(policy: DispatchPolicy) -> str:
    return f"{policy.slug}@{policy.version}"


def find_policy(name: str) -> DispatchPolicy | None:
    """The policy `slug@version`, or of `slug` alone the newest version."""
    slug, _, version = name.partition("@")
    rows = DispatchPolicy.objects.filter(slug=slug).order_by("-version")
    if version:
        rows = rows.filter(version=version) if version.isdecimal() else rows.none()
    return rows.first()
