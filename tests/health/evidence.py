"""Short words for the tests of this folder: errors, and attempts that end."""

from datetime import datetime

from catalog.audit import Actor
from catalog.models import Channel, Supply
from catalog.providers.types import ProviderError
from health.models import ChannelHealth, HealthEvent, SupplyHealth
from health.services.begin_recoveries import begin_recoveries
from health.services.record_evidence import AttemptEvidence, record_evidence
from tests.factories import NOW

OPERATOR = Actor("li.m", "console")

FAILED = ProviderError("supply", "supply", False, "internal_permanent")
OVERLOADED = ProviderError("capacity", "supply", True, "overloaded")
QUOTA = ProviderError("capacity", "supply", True, "quota")
NO_BALANCE = ProviderError("supply", "channel", True, "balance")
NO_CONNECTION = ProviderError("supply", "channel", True, "network")
CONTENT_REFUSED = ProviderError("content", "request", False, "safety_input")
UNKNOWN = ProviderError("unknown", "attempt", False, "submission_unknown")


def health_of(subject: Channel | Supply) -> ChannelHealth | SupplyHealth:
    """The stored circuit, or the untouched one that a missing row stands for."""
    if isinstance(subject, Supply):
        return SupplyHealth.objects.filter(pk=subject.pk).first() or SupplyHealth(supply=subject)
    return ChannelHealth.objects.filter(pk=subject.pk).first() or ChannelHealth(channel=subject)


def piece(supply: Supply, error: ProviderError | None = None) -> AttemptEvidence:
    """Of an attempt that was created under the circuits as they are now."""
    return AttemptEvidence(
        attempt="att_1",
        channel_id=supply.channel_id,
        supply_id=supply.pk,
        channel_epoch=health_of(supply.channel).epoch,
        supply_epoch=health_of(supply).epoch,
        error=error,
    )


def win(supply: Supply, *, times: int = 1, at: datetime = NOW) -> list[HealthEvent]:
    return [event for _ in range(times) for event in record_evidence([piece(supply)], at)]


def fail(
    supply: Supply, error: ProviderError = FAILED, *, times: int = 1, at: datetime = NOW
) -> list[HealthEvent]:
    return [event for _ in range(times) for event in record_evidence([piece(supply, error)], at)]


def probing(supply: Supply) -> Supply:
    """After an outage and its cooldown."""
    fail(supply, times=5)
    due = health_of(supply).cooldown_until
    assert due is not None
    begin_recoveries(due, lambda _channel: True)
    return supply
