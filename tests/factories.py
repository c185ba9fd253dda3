"""Rows for tests, valid by default: name only what the test is about.

Times are counted from NOW, never from the clock."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import factory
from django.contrib.auth.models import Group, User
from django.db import models
from factory.django import DjangoModelFactory

from billing import models as billing
from billing.keys import new_key
from catalog import models as catalog
from catalog.hashing import document_hash
from dispatch import models as dispatch
from dispatch.lifecycle import FINAL_ATTEMPT_STATES, FINAL_JOB_STATES, AttemptState, JobState
from health import models as health

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

VIDEO_CAPABILITY = {
    "modes": ["text_to_video", "image_to_video"],
    "durations_s": {"min": 4, "max": 15},
    "resolutions": ["480p", "720p", "1080p"],
    "aspect_ratios": ["16:9", "9:16", "1:1"],
    "max_images": 9,
    "max_videos": 3,
    "max_audios": 3,
    "audio": True,
    "constraints": [],
}
IMAGE_CAPABILITY = {
    "modes": ["text_to_image"],
    "sizes": ["1024x1024", "2048x2048"],
    "max_n": 4,
    "max_images": 4,
    "constraints": [],
}
VIDEO_REQUEST = {
    "mode": "text_to_video",
    "prompt": "A lighthouse in a storm",
    "duration_s": 5,
    "resolution": "1080p",
    "aspect_ratio": "16:9",
    "audio": False,
}
IMAGE_REQUEST = {"mode": "text_to_image", "prompt": "A lighthouse in a storm", "size": "1024x1024", "n": 1}


class Rows[M: models.Model](DjangoModelFactory[M]):
    """A factory whose call is typed as the row that it makes."""

    class Meta:
        abstract = True

    if TYPE_CHECKING:

        def __new__(cls, **values: Any) -> M: ...  # type: ignore[misc]


# --- people ------------------------------------------------------------------------------------------


class UserFactory(Rows[User]):
    """A console user; `UserFactory(roles=["operator"])`."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"operator{n}")

    @factory.post_generation
    def roles(self: User, _create: bool, extracted: list[str] | None, **_: object) -> None:
        for name in extracted or []:
            self.groups.add(Group.objects.get_or_create(name=name)[0])


class CustomerGroupFactory(Rows[billing.CustomerGroup]):
    class Meta:
        model = billing.CustomerGroup

    slug = factory.Sequence(lambda n: f"group-{n}")
    name = factory.LazyAttribute(lambda o: o.slug.title())


class CustomerFactory(Rows[billing.Customer]):
    class Meta:
        model = billing.Customer

    name = factory.Sequence(lambda n: f"Customer {n}")


class ApiKeyFactory(Rows[billing.ApiKey]):
    """`key.secret` is the key as its owner knows it."""

    class Meta:
        model = billing.ApiKey

    class Params:
        made = factory.LazyFunction(new_key)

    customer = factory.SubFactory(CustomerFactory)
    prefix = factory.LazyAttribute(lambda o: o.made.prefix)
    last_four = factory.LazyAttribute(lambda o: o.made.last_four)
    hash = factory.LazyAttribute(lambda o: o.made.hash)
    scopes = factory.LazyFunction(lambda: ["read", "submit"])


def api_key(**values: object) -> tuple[billing.ApiKey, str]:
    """A key's row and its secret."""
    made = new_key()
    return ApiKeyFactory(prefix=made.prefix, last_four=made.last_four, hash=made.hash, **values), made.secret


# --- what exists -------------------------------------------------------------------------------------


class CapacityGroupFactory(Rows[catalog.CapacityGroup]):
    class Meta:
        model = catalog.CapacityGroup

    endpoint = "https://ark.example.com:443/api/v3"
    account = factory.Sequence(lambda n: f"account-{n}")
    capacity = 10


class ChannelFactory(Rows[catalog.Channel]):
    class Meta:
        model = catalog.Channel

    slug = factory.Sequence(lambda n: f"channel-{n}")
    provider = "ark"
    region = "cn-beijing"
    base_url = "https://ark.example.com/api/v3"
    account = factory.LazyAttribute(lambda o: f"account of {o.slug}")
    concurrency = 10


class SupplyFactory(Rows[catalog.Supply]):
    """A supply with a capability version and a price in force since a month before NOW."""

    class Meta:
        model = catalog.Supply
        skip_postgeneration_save = True

    class Params:
        image = factory.Trait(modality="image", real_person_policy="")

    slug = factory.Sequence(lambda n: f"supply-{n}")
    channel = factory.SubFactory(ChannelFactory)
    modality = "video"
    provider_model = "doubao-seedance-2-0"
    model_family = "seedance"
    model_version = "2.0"
    concurrency = 10
    real_person_policy = "allowed"

    @factory.post_generation
    def capability(self: catalog.Supply, _create: bool, extracted: dict | None, **_: object) -> None:
        """Its published document: given, or a wide default of its modality."""
        default = VIDEO_CAPABILITY if self.modality == "video" else IMAGE_CAPABILITY
        self.capability_version = CapabilityVersionFactory(supply=self, document=extracted or default)
        self.save(update_fields=["capability_version"])

    @factory.post_generation
    def price(self: catalog.Supply, _create: bool, extracted: dict | bool | None, **_: object) -> None:
        """Its cost document: given, or a default of its modality; False for none."""
        if extracted is not False:
            mode = "per_second" if self.modality == "video" else "per_request"
            document = extracted or {"mode": mode, "currency": "USD", mode: "0.04"}
            CostRuleVersionFactory(rule__supply=self, document=document)


class CapabilityVersionFactory(Rows[catalog.CapabilityVersion]):
    class Meta:
        model = catalog.CapabilityVersion

    supply = factory.SubFactory(SupplyFactory)
    label = factory.Sequence(lambda n: f"v{n}")
    document = factory.LazyFunction(lambda: dict(VIDEO_CAPABILITY))
    document_hash = factory.LazyAttribute(lambda o: document_hash(o.document))
    effective_from = NOW - timedelta(days=30)
    published_by = "command:catalogue import"
    published_at = NOW - timedelta(days=30)


class DispatchPolicyFactory(Rows[catalog.DispatchPolicy]):
    class Meta:
        model = catalog.DispatchPolicy

    slug = factory.Sequence(lambda n: f"policy-{n}")
    version = 1
    parameters = factory.LazyFunction(lambda: {"order": "stable_first"})
    created_at = NOW - timedelta(days=30)
    created_by = "command:catalogue import"


class DegradationRuleFactory(Rows[catalog.DegradationRule]):
    class Meta:
        model = catalog.DegradationRule

    slug = factory.Sequence(lambda n: f"rule-{n}")
    from_profile = "933"
    to_profile = "900"
    drop_inputs = factory.LazyFunction(lambda: ["reference_videos", "reference_audios"])
    verified_at = NOW - timedelta(days=20)
    published_at = NOW - timedelta(days=20)


class PublicModelFactory(Rows[catalog.PublicModel]):
    """A model that serves: enabled, and published at its revision."""

    class Meta:
        model = catalog.PublicModel

    class Params:
        image = factory.Trait(modality="image", profile="", parameters=IMAGE_CAPABILITY)

    slug = factory.Sequence(lambda n: f"model-{n}")
    modality = "video"
    profile = "933"
    display_name = factory.LazyAttribute(lambda o: o.slug)
    parameters = factory.LazyFunction(lambda: dict(VIDEO_CAPABILITY))
    policy = factory.SubFactory(DispatchPolicyFactory)
    enabled = True
    published = True
    revision = 1
    published_revision = factory.LazyAttribute(lambda o: o.revision if o.published else None)


class SupplyBindingFactory(Rows[catalog.SupplyBinding]):
    class Meta:
        model = catalog.SupplyBinding

    class Params:
        degraded = factory.Trait(tier="degraded", degradation_rule=factory.SubFactory(DegradationRuleFactory))

    public_model = factory.SubFactory(PublicModelFactory)
    supply = factory.SubFactory(SupplyFactory)
    tier = "exact"


class CostRuleFactory(Rows[billing.CostRule]):
    class Meta:
        model = billing.CostRule
        django_get_or_create = ("supply",)

    supply = factory.SubFactory(SupplyFactory, price=False)


class CostRuleVersionFactory(Rows[billing.CostRuleVersion]):
    class Meta:
        model = billing.CostRuleVersion

    rule = factory.SubFactory(CostRuleFactory)
    number = 1
    mode = factory.LazyAttribute(lambda o: o.document["mode"])
    currency = factory.LazyAttribute(lambda o: o.document["currency"])
    document = factory.LazyFunction(lambda: {"mode": "per_second", "currency": "USD", "per_second": "0.04"})
    document_hash = factory.LazyAttribute(lambda o: document_hash(o.document))
    effective_from = NOW - timedelta(days=30)
    published_by = "command:catalogue import"
    published_at = NOW - timedelta(days=30)


# --- the work ----------------------------------------------------------------------------------------


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


# --- health ------------------------------------------------------------------------------------------


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
