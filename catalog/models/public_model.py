"""Public models, the policies they are routed by, and their bindings to supplies."""

from django.db import models
from django.db.models import Q
from django.utils.functional import cached_property

from catalog.capability import Capability, parse_capability
from catalog.fields import PublicIdField
from catalog.hashing import document_hash
from catalog.models.supply import Modality, Supply
from catalog.policy import PRIORITY_MAX, Policy, parse_policy

IMAGE_EXECUTION_S = 600


class Tier(models.TextChoices):
    EXACT = "exact"
    FALLBACK = "fallback"
    DEGRADED = "degraded"


class DegradationMode(models.TextChoices):
    STRICT = "strict"
    BEST_EFFORT = "best_effort"


class RefusalIsolation(models.TextChoices):
    PROVIDER = "provider"  # other providers may take what one refused
    MODEL = "model"  # a refusal closes the whole public model for that content


class DispatchPolicy(models.Model):
    """One version of the rules a public model is routed by; a change makes a new version."""

    public_id = PublicIdField("pol")
    slug = models.SlugField(max_length=60)
    version = models.PositiveIntegerField()
    parameters = models.JSONField()  # by catalog.policy.Policy
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)

    class Meta:
        verbose_name_plural = "dispatch policies"
        constraints = [models.UniqueConstraint(fields=["slug", "version"], name="one_policy_per_version")]

    def __str__(self) -> str:
        return f"{self.slug} v{self.version}"

    @cached_property
    def parsed(self) -> Policy:
        return parse_policy(self.parameters)

    def execution_s(self, modality: str) -> int:
        """How long a provider may work: as the policy says, else an hour, for an image ten minutes."""
        if modality == Modality.IMAGE and "max_execution_s" not in self.parameters:
            return IMAGE_EXECUTION_S
        return self.parsed.max_execution_s

    def parameters_hash(self) -> str:
        return document_hash(self.parameters)


class DegradationRule(models.Model):
    """A declared transformation from one profile to a lesser one."""

    public_id = PublicIdField("dgr")
    slug = models.SlugField(max_length=60, unique=True)
    from_profile = models.CharField(max_length=40)
    to_profile = models.CharField(max_length=40)
    drop_inputs = models.JSONField()  # names of request lists
    verified_at = models.DateTimeField(null=True, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(published_at=None) | Q(verified_at__isnull=False),
                name="only_verified_rules_are_published",
            )
        ]

    def __str__(self) -> str:
        return f"{self.from_profile} → {self.to_profile}"


class PublicModel(models.Model):
    """What a customer asks for."""

    public_id = PublicIdField("mod")
    slug = models.CharField(max_length=80, unique=True)  # with dots, e.g. seedance-2.0-933
    modality = models.CharField(max_length=5, choices=Modality)
    profile = models.CharField(max_length=40, blank=True)
    display_name = models.CharField(max_length=120)
    disclosure = models.TextField(blank=True)  # what a degraded delivery may lose, in words for customers
    parameters = models.JSONField()  # public limits, in the form of a capability document
    example_requests = models.JSONField(default=list, blank=True)
    policy = models.ForeignKey(DispatchPolicy, on_delete=models.PROTECT, related_name="public_models")
    degradation = models.CharField(max_length=11, choices=DegradationMode, default=DegradationMode.STRICT)
    emergency_override = models.BooleanField(default=False)
    baseline_micros = models.BigIntegerField(null=True, blank=True)  # policy's currency
    refusal_isolation = models.CharField(
        max_length=8, choices=RefusalIsolation, default=RefusalIsolation.PROVIDER
    )
    price = models.JSONField(null=True, blank=True)  # sale price: {profile: cost document}
    allowed_groups = models.JSONField(default=list, blank=True)  # customer group slugs; empty: every customer
    enabled = models.BooleanField(default=False)
    published = models.BooleanField(default=False)
    revision = models.PositiveIntegerField(default=1)  # grows with every saved change
    published_revision = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(published=False) | Q(published_revision=models.F("revision")),
                name="published_at_its_own_revision",
            ),
            models.CheckConstraint(
                condition=Q(baseline_micros=None) | Q(baseline_micros__gte=0), name="baseline_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    @cached_property
    def limits(self) -> Capability:
        """What its customers may ask for. Raises DocumentError."""
        return parse_capability(self.modality, self.parameters)


class SupplyBinding(models.Model):
    """The link from a public model to a supply."""

    public_id = PublicIdField("bnd")
    public_model = models.ForeignKey(PublicModel, on_delete=models.CASCADE, related_name="bindings")
    supply = models.ForeignKey(Supply, on_delete=models.PROTECT, related_name="bindings")
    tier = models.CharField(max_length=8, choices=Tier)
    priority = models.PositiveIntegerField(default=0)  # higher first; read by manual_priority only
    enabled = models.BooleanField(default=True)
    degradation_rule = models.ForeignKey(
        DegradationRule, null=True, blank=True, on_delete=models.PROTECT, related_name="bindings"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["public_model", "supply", "tier"], name="one_binding_per_model_supply_and_tier"
            ),
            models.CheckConstraint(
                condition=Q(priority__gte=0, priority__lte=PRIORITY_MAX), name="priority_0_to_1000000"
            ),
            models.CheckConstraint(
                condition=Q(tier="degraded", degradation_rule__isnull=False)
                | (~Q(tier="degraded") & Q(degradation_rule=None)),
                name="degradation_rule_iff_degraded",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.public_model} → {self.supply} ({self.tier})"


class ModelRevision(models.Model):
    """A public model with its bindings and policy as saved once; append-only."""

    public_model = models.ForeignKey(PublicModel, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    note = models.CharField(max_length=300, blank=True)
    saved_by = models.CharField(max_length=150)
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_model", "number"], name="one_document_per_model_revision")
        ]

    def __str__(self) -> str:
        return f"{self.public_model} revision {self.number}"
