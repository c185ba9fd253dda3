"""Channels, the groups that share a real limit, supplies, and what supplies can do."""

from django.db import models
from django.db.models import Q

from catalog.fields import PublicIdField


class AdminState(models.TextChoices):
    ENABLED = "enabled"
    DRAINING = "draining"  # finishes what runs, takes nothing new
    DISABLED = "disabled"


class Modality(models.TextChoices):
    VIDEO = "video"
    IMAGE = "image"


class RealPersonPolicy(models.TextChoices):
    ALLOWED = "allowed"
    RESTRICTED = "restricted"
    DENIED = "denied"


class Lifecycle(models.TextChoices):
    PREVIEW = "preview"
    STABLE = "stable"
    DEPRECATED = "deprecated"


class CapacityGroup(models.Model):
    """Channels with the same normalized endpoint and declared account: one real limit.

    A limit of this installation, not a claim about the vendor's own quota."""

    public_id = PublicIdField("grp")
    endpoint = models.CharField(max_length=300)  # scheme://host:port/prefix, normalized
    account = models.CharField(max_length=120)
    capacity = models.PositiveIntegerField()  # slots

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "account"], name="one_group_per_endpoint_and_account"
            ),
            models.CheckConstraint(condition=Q(capacity__gte=1), name="group_capacity_at_least_1"),
        ]

    def __str__(self) -> str:
        return f"{self.account} at {self.endpoint}"


class Channel(models.Model):
    """One account at a provider in one region."""

    public_id = PublicIdField("chn")
    slug = models.SlugField(max_length=60, unique=True)
    provider = models.CharField(max_length=40)  # key of an adapter
    region = models.CharField(max_length=40, blank=True)
    base_url = models.URLField(max_length=300)
    credential = models.TextField(blank=True)  # sealed by catalog.vault; never leaves the process unsealed
    credential_hint = models.CharField(max_length=4, blank=True)  # its last four characters
    credential_reference = models.CharField(max_length=120, blank=True)  # "env:NAME" it was imported from
    credential_expires_on = models.DateField(null=True, blank=True)  # its last day, where it has one
    account = models.CharField(max_length=120, blank=True)  # as declared; groups channels
    capacity_group = models.ForeignKey(
        CapacityGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="channels"
    )
    concurrency = models.PositiveIntegerField()  # slots
    unknown_limit = models.PositiveIntegerField(
        null=True, blank=True
    )  # slots; empty: max(2, 5 % of concurrency)
    state = models.CharField(max_length=10, choices=AdminState, default=AdminState.ENABLED)
    config = models.JSONField(default=dict, blank=True)  # by the adapter's JSON Schema
    revision = models.PositiveIntegerField(default=1)  # optimistic lock
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(concurrency__gte=1), name="channel_concurrency_at_least_1"),
            models.CheckConstraint(condition=Q(state__in=AdminState.values), name="channel_state_known"),
        ]

    def __str__(self) -> str:
        return self.slug


class Supply(models.Model):
    """One provider model, in one version, reachable through one channel."""

    public_id = PublicIdField("sup")
    slug = models.SlugField(max_length=80, unique=True)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="supplies")
    modality = models.CharField(max_length=5, choices=Modality)
    provider_model = models.CharField(max_length=160)
    model_family = models.CharField(max_length=80)  # what refusal memory shares
    model_version = models.CharField(max_length=80, blank=True)
    concurrency = models.PositiveIntegerField()  # slots
    unknown_limit = models.PositiveIntegerField(null=True, blank=True)  # slots
    state = models.CharField(max_length=10, choices=AdminState, default=AdminState.ENABLED)
    real_person_policy = models.CharField(max_length=10, choices=RealPersonPolicy, blank=True)  # video only
    lifecycle = models.CharField(max_length=10, choices=Lifecycle, default=Lifecycle.STABLE)
    sunset_on = models.DateField(null=True, blank=True)
    capability_version = models.ForeignKey(
        "CapabilityVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="published_for"
    )
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "supplies"
        constraints = [
            models.CheckConstraint(condition=Q(concurrency__gte=1), name="supply_concurrency_at_least_1"),
            models.CheckConstraint(condition=Q(state__in=AdminState.values), name="supply_state_known"),
            models.CheckConstraint(
                condition=Q(modality="video", real_person_policy__in=RealPersonPolicy.values)
                | Q(modality="image", real_person_policy=""),
                name="real_person_policy_for_video_only",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class CapabilityVersion(models.Model):
    """What a supply can do, from a time on. Immutable but for its end."""

    public_id = PublicIdField("cap")
    supply = models.ForeignKey(Supply, on_delete=models.PROTECT, related_name="capability_versions")
    label = models.CharField(max_length=60)
    document = models.JSONField()
    document_hash = models.CharField(max_length=64)  # SHA-256 of the canonical document
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True, blank=True)
    published_by = models.CharField(max_length=150)
    published_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["supply", "label"], name="one_capability_label_per_supply"),
            models.CheckConstraint(
                condition=Q(effective_to=None) | Q(effective_to__gt=models.F("effective_from")),
                name="capability_ends_after_it_begins",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.supply} {self.label}"
