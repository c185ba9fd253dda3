"""The list of supplies, and everything that the page of one tells."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from billing.models import CostRuleVersion
from billing.repository import prices_in_force
from catalog.models import AuditEntry, CapabilityVersion, Supply, SupplyBinding
from dispatch.models import Attempt
from dispatch.queries.counting import capped
from dispatch.queries.health_log import listed
from dispatch.queries.places import SupplyNow, supplies_now
from dispatch.queries.success import DayOfSuccess, last_failures, success_of
from dispatch.routing.types import Statistics
from dispatch.selection_facts import read_statistics
from health.circuit import Subject
from health.models import HealthEvent, RefusalRecord

EVENTS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class SupplyLine:
    now: SupplyNow
    success: DayOfSuccess
    price: CostRuleVersion | None
    models: int  # that use it, by an enabled binding


def supply_lines(now: datetime, with_retired: bool) -> list[SupplyLine]:
    """By slug; seven queries."""
    supplies = supplies_now(with_retired=with_retired)
    success = success_of([each.row.pk for each in supplies], now)
    prices = prices_in_force(now)
    used = Counter(SupplyBinding.objects.filter(enabled=True).order_by().values_list("supply_id", flat=True))
    return [
        SupplyLine(each, success[each.row.pk], prices.get(each.row.pk), used[each.row.pk])
        for each in supplies
    ]


@dataclass(frozen=True)
class SupplyStory:
    """What changes while its page stands there."""

    now: SupplyNow
    success: DayOfSuccess
    statistics: Statistics
    bindings: Sequence[SupplyBinding]
    refusals: int  # contents that it is not sent now; capped


@dataclass(frozen=True)
class SupplyPast:
    """What its page tells beside that."""

    capabilities: Sequence[CapabilityVersion]  # in force and later ones, by their start
    prices: Sequence[CostRuleVersion]  # in force and scheduled, by their start
    failures: Sequence[Attempt]  # newest first
    by_reason: Mapping[str, int]  # how many of `failures` each code ended
    events: Sequence[HealthEvent]
    last_change: AuditEntry | None


def supply_story(slug: str, now: datetime) -> SupplyStory | None:
    """A fixed number of queries, however much it did."""
    supply = find_supply(slug)
    if supply is None:
        return None
    row = supply.row
    refusals = RefusalRecord.objects.filter(
        provider=row.channel.provider, model_family=row.model_family, ended_at=None
    )
    return SupplyStory(
        now=supply,
        success=success_of([row.pk], now)[row.pk],
        statistics=read_statistics((row.pk,), now)[row.pk],
        bindings=list(
            SupplyBinding.objects.filter(supply=row)
            .select_related("public_model")
            .order_by("public_model__slug", "tier")
        ),
        refusals=capped(refusals),
    )


def find_supply(slug: str) -> SupplyNow | None:
    """Four queries."""
    return next((each for each in supplies_now(with_retired=True) if each.row.slug == slug), None)


def supply_past(row: Supply, now: datetime) -> SupplyPast:
    """A fixed number of queries."""
    failures = last_failures(row.pk)
    changes = AuditEntry.objects.filter(subject=f"supply:{row.public_id}").order_by("-at", "-id")
    return SupplyPast(
        capabilities=[
            each for each in row.capability_versions.order_by("effective_from") if _holds(each, now)
        ],
        prices=[each for each in _prices(row.pk) if _holds(each, now)],
        failures=failures,
        by_reason=dict(Counter(each.error_code or each.state for each in failures).most_common()),
        events=list(listed(_events_of(row.pk)).order_by("-id")[:EVENTS_SHOWN]),
        last_change=changes.first(),
    )


def _events_of(supply: int) -> QuerySet[HealthEvent]:
    return HealthEvent.objects.filter(subject=Subject.SUPPLY, subject_id=supply)


def _prices(supply: int) -> Sequence[CostRuleVersion]:
    versions = CostRuleVersion.objects.filter(rule__supply=supply, cancelled_at=None)
    return list(versions.order_by("effective_from"))


def _holds(version: CapabilityVersion | CostRuleVersion, now: datetime) -> bool:
    """In force or later."""
    return version.effective_to is None or version.effective_to > now
