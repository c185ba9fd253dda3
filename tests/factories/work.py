"""Jobs and attempts, and what they leave behind."""

from datetime import timedelta

import factory

from catalog.hashing import document_hash
from dispatch import models as dispatch
from dispatch.lifecycle import FINAL_ATTEMPT_STATES, FINAL_JOB_STATES, AttemptState, JobState
from tests.factories.catalogue import PublicModelFactory, SupplyFactory
from tests.factories.people import ApiKeyFactory
from tests.factories.rows import IMAGE_REQUEST, NOW, VIDEO_REQUEST, Rows


class JobFactory(Rows[dispatch.Job]):
    """A queued job; `finished_at` follows from `state`. A succeeded one is made by `succeeded_job`."""

    class Meta:
        model = dispatch.Job

    api_key = factory.SubFactory(ApiKeyFactory)
    customer = factory.SelfAttribute("api_key.customer")
    public_model = factory.SubFactory(PublicModelFactory)
    model_revision = factory.SelfAttribute("public_model.revision")
    modality = factory.SelfAttribute("public_model.modality")
    requested_profile = factory.SelfAttribute("public_model.profile")
    request = factory.LazyAttribute(
        lambda o: dict(VIDEO_REQUEST if o.modality == "video" else IMAGE_REQUEST, modality=o.modality)
    )
    request_hash = factory.LazyAttribute(lambda o: document_hash(o.request))
    state = JobState.QUEUED
    created_at = NOW
    dispatch_deadline_at = factory.LazyAttribute(lambda o: o.created_at + timedelta(minutes=20))
    next_action_at = factory.LazyAttribute(lambda o: None if o.state in FINAL_JOB_STATES else o.created_at)
    finished_at = factory.LazyAttribute(
        lambda o: o.created_at + timedelta(minutes=3) if o.state in FINAL_JOB_STATES else None
    )


class SelectionRoundFactory(Rows[dispatch.SelectionRound]):
    class Meta:
        model = dispatch.SelectionRound

    job = factory.SubFactory(JobFactory)
    attempt_number = 1
    number = factory.LazyAttribute(lambda o: o.job.rounds.count() + 1)
    snapshot = factory.LazyFunction(dict)
    outcome = "chosen"
    created_at = factory.LazyAttribute(lambda o: o.job.created_at + timedelta(seconds=1))


class AttemptFactory(Rows[dispatch.Attempt]):
    """An attempt of a job on a supply, both made unless given; `finished_at` follows from `state`."""

    class Meta:
        model = dispatch.Attempt

    job = factory.SubFactory(JobFactory, state=JobState.RUNNING)
    number = 1
    supply = factory.SubFactory(SupplyFactory)
    channel = factory.SelfAttribute("supply.channel")
    tier = "exact"
    selection_round = factory.SubFactory(
        SelectionRoundFactory,
        job=factory.SelfAttribute("..job"),
        attempt_number=factory.SelfAttribute("..number"),
    )
    capability_version = factory.SelfAttribute("supply.capability_version")
    cost_rule_version = factory.LazyAttribute(
        lambda o: o.supply.cost_rule.versions.order_by("-number").first()
    )
    policy = factory.SelfAttribute("job.public_model.policy")
    model_revision = factory.SelfAttribute("job.model_revision")
    compile_plan = factory.LazyFunction(lambda: {"steps": []})
    client_request_key = factory.Sequence(lambda n: f"fy-{n:08d}")
    request_hash = factory.SelfAttribute("job.request_hash")
    quote_micros = 200_000
    quote_currency = "USD"
    state = AttemptState.READY
    created_at = factory.LazyAttribute(lambda o: o.job.created_at + timedelta(seconds=2))
    finished_at = factory.LazyAttribute(
        lambda o: o.created_at + timedelta(minutes=2) if o.state in FINAL_ATTEMPT_STATES else None
    )
    next_look_at = factory.LazyAttribute(lambda o: None if o.finished_at else o.created_at)


class ProviderJobFactory(Rows[dispatch.ProviderJob]):
    class Meta:
        model = dispatch.ProviderJob

    attempt = factory.SubFactory(AttemptFactory, state=AttemptState.ACCEPTED)
    channel = factory.SelfAttribute("attempt.channel")
    provider_job_id = factory.Sequence(lambda n: f"cgt-20261130120000-{n:05d}")
    raw_status = "running"
    status = "running"
    submitted_at = factory.LazyAttribute(lambda o: o.attempt.created_at + timedelta(seconds=1))


class ProviderEventFactory(Rows[dispatch.ProviderEvent]):
    class Meta:
        model = dispatch.ProviderEvent

    attempt = factory.SubFactory(AttemptFactory)
    channel = factory.SelfAttribute("attempt.channel")
    kind = "submit"
    outcome = "accepted"
    at = factory.LazyAttribute(lambda o: o.attempt.created_at + timedelta(seconds=1))


class CapacityLeaseFactory(Rows[dispatch.CapacityLease]):
    class Meta:
        model = dispatch.CapacityLease

    attempt = factory.SubFactory(AttemptFactory)
    supply = factory.SelfAttribute("attempt.supply")
    channel = factory.SelfAttribute("attempt.channel")
    group = factory.SelfAttribute("channel.capacity_group")
    granted_at = factory.LazyAttribute(lambda o: o.attempt.created_at)
    renewed_at = factory.SelfAttribute("granted_at")
    expires_at = factory.LazyAttribute(lambda o: o.granted_at + timedelta(minutes=5))


class AssetFactory(Rows[dispatch.Asset]):
    class Meta:
        model = dispatch.Asset

    attempt = factory.SubFactory(AttemptFactory)
    customer = factory.SelfAttribute("attempt.job.customer")
    kind = "output"
    content_type = "video/mp4"
    size_bytes = 1_482_104
    sha256 = factory.LazyAttribute(lambda o: document_hash(str(o.attempt)))
    width = 1920
    height = 1080
    duration_ms = 5000
    path = factory.Sequence(lambda n: f"outputs/{n}.mp4")
    created_at = factory.LazyAttribute(lambda o: o.attempt.created_at + timedelta(minutes=2))
