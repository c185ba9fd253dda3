"""Health of channels and supplies, and alerts."""

from datetime import timedelta

import factory

from catalog import models as catalog
from dispatch import models as dispatch
from dispatch.lifecycle import AttemptState, JobState
from health import models as health
from tests.factories.catalogue import ChannelFactory, SupplyFactory
from tests.factories.rows import NOW, Rows
from tests.factories.work import AssetFactory, AttemptFactory, JobFactory, ProviderJobFactory


class ChannelHealthFactory(Rows[health.ChannelHealth]):
    class Meta:
        model = health.ChannelHealth

    channel = factory.SubFactory(ChannelFactory)
    cooldown_until = factory.LazyAttribute(
        lambda o: NOW + timedelta(seconds=30) if o.state == "circuit_open" else None
    )
    recovery_successes = factory.LazyAttribute(lambda o: 2 if o.state == "recovering" else 0)
    state = "healthy"


class SupplyHealthFactory(Rows[health.SupplyHealth]):
    class Meta:
        model = health.SupplyHealth

    supply = factory.SubFactory(SupplyFactory)
    state = "healthy"
    cooldown_until = factory.LazyAttribute(
        lambda o: NOW + timedelta(seconds=30) if o.state == "circuit_open" else None
    )
    recovery_successes = factory.LazyAttribute(lambda o: 2 if o.state == "recovering" else 0)


class AlertFactory(Rows[health.Alert]):
    """A critical alert that fires and that nobody acknowledged."""

    class Meta:
        model = health.Alert

    class Params:
        acknowledged = factory.Trait(acknowledged_at=NOW, acknowledged_by="li.m")
        resolved = factory.Trait(resolved_at=NOW, resolved_why="the condition ended")

    code = "submission_abandoned"
    severity = "critical"
    subject = factory.Sequence(lambda n: f"attempt:att_{n}")
    dedupe_key = factory.LazyAttribute(lambda o: f"{o.code}:{o.subject}")
    opened_at = NOW - timedelta(minutes=12)
    last_seen_at = factory.SelfAttribute("opened_at")


def succeeded_job(supply: catalog.Supply | None = None, **values: object) -> dispatch.Job:
    """A job that its one attempt delivered, with the provider's job and the asset."""
    job = JobFactory(**{"state": JobState.RUNNING, **values})
    attempt = AttemptFactory(
        job=job,
        supply=supply or SupplyFactory(image=job.modality == "image"),
        state=AttemptState.SUCCEEDED,
        cost_micros=200_000,
    )
    ProviderJobFactory(attempt=attempt, status="succeeded", raw_status="succeeded")
    AssetFactory(attempt=attempt)
    job.state, job.adopted_attempt, job.finished_at = JobState.SUCCEEDED, attempt, attempt.finished_at
    job.started_at, job.next_action_at = attempt.created_at, None
    job.provider_cost_micros, job.charged_micros = 200_000, 300_000
    job.actual_profile = job.requested_profile
    job.save()
    return job
