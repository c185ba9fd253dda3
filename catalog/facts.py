"""What an operator decides about each entry of the catalogue, as plain values; pure.

The names are those of the catalogue file, so an entry there, a form and a saved revision say the same."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from catalog.policy import parse_policy


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """A channel but for its credential; concurrency and unknown limit in slots. `credential_expires` is the
    credential's last day, an ISO date."""

    slug: str
    provider: str
    base_url: str
    concurrency: int
    region: str = ""
    account: str = ""
    unknown_limit: int | None = None
    state: str = "enabled"
    config: Mapping[str, Any] = field(default_factory=dict)
    credential_expires: str | None = None


@dataclass(frozen=True, slots=True)
class SupplyFacts:
    """A supply but for its capability and its price; `channel` is a slug, `sunset` an ISO date."""

    slug: str
    channel: str
    modality: str
    provider_model: str
    model_family: str
    concurrency: int
    model_version: str = ""
    unknown_limit: int | None = None
    state: str = "enabled"
    real_person_policy: str | None = None  # video only
    lifecycle: str = "stable"
    sunset: str | None = None


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """A degradation rule; once published, its transformation never changes."""

    slug: str
    from_profile: str
    to_profile: str
    drop_inputs: tuple[str, ...]
    verified: bool = False
    published: bool = False


@dataclass(frozen=True, slots=True)
class BindingFacts:
    """A binding; `supply` and `rule` are slugs, `rule` for tier degraded only."""

    supply: str
    tier: str
    priority: int = 0
    enabled: bool = True
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A public model with its bindings. `policy` is a slug, or `slug@version` for a version that is
    not the newest; `baseline` an amount in the policy's currency as billing.money writes it."""

    slug: str
    modality: str
    display_name: str
    parameters: Mapping[str, Any]
    policy: str
    profile: str = ""
    disclosure: str = ""
    example_requests: tuple[Mapping[str, Any], ...] = ()
    degradation: str = "strict"
    emergency_override: bool = False
    baseline: str | None = None
    refusal_isolation: str = "provider"
    price: Mapping[str, Any] | None = None
    allowed_groups: tuple[str, ...] = ()
    bindings: tuple[BindingFacts, ...] = ()


_TIERS = ("exact", "fallback", "degraded")

Facts = ChannelFacts | SupplyFacts | RuleFacts | ModelFacts


def plain(facts: Facts) -> dict[str, Any]:
    """The facts as JSON values, without the slug that names them."""
    values = asdict(facts)
    del values["slug"]
    return {name: _listed(value) for name, value in values.items()}


def model_facts(slug: str, values: Mapping[str, Any]) -> ModelFacts:
    """The inverse of `plain` for a public model."""
    bindings = tuple(BindingFacts(**binding) for binding in values.get("bindings", ()))
    lists = {name: tuple(values.get(name, ())) for name in ("example_requests", "allowed_groups")}
    return ModelFacts(slug=slug, **{**values, **lists, "bindings": bindings})


def in_order(bindings: Iterable[BindingFacts]) -> tuple[BindingFacts, ...]:
    """Tiers in their order, higher priority first: one order for one set of bindings."""
    return tuple(sorted(bindings, key=lambda each: (_TIERS.index(each.tier), -each.priority, each.supply)))


def policy_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of a policy with its value, so that a stored version says all that it means,
    whatever later defaults are. Raises PolicyError."""
    return {name: _written(value) for name, value in asdict(parse_policy(parameters)).items()}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _written(value: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    return format(value.normalize(), "f")
