"""Slots: who holds one, until when, and how many are taken."""

from django.db import models
from django.db.models import F, Q

from billing.models import Customer
from catalog.fields import PublicIdField
from catalog.models import CapacityGroup, Channel, Supply


class LeaseState(models.TextChoices):
    LIVE = "live"
    UNKNOWN = "unknown"  # nobody can say whether the provider works on it: it keeps its slot
    RELEASED = "released"


class CapacityLease(models.Model):
    """The right of one attempt to one slot of its channel, its supply and their group."""

    token = PublicIdField("lse")
    attempt = models.ForeignKey("dispatch.Attempt", on_delete=models.PROTECT, related_name="leases")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="leases")
    supply = models.ForeignKey(Supply, on_delete=models.PROTECT, related_name="leases")
    group = models.ForeignKey(CapacityGroup, null=True, on_delete=models.PROTECT, related_name="leases")
    customer = models.ForeignKey(
        Customer, null=True, on_delete=models.PROTECT, related_name="leases", db_index=False
    )  # whose job it is, for the customer's own limit
    fence = models.PositiveIntegerField(default=1)  # grows when the lease is given to another process
    state = models.CharField(max_length=8, choices=LeaseState, default=LeaseState.LIVE)
    channel_epoch = models.PositiveIntegerField(default=0)
    supply_epoch = models.PositiveIntegerField(default=0)
    granted_at = models.DateTimeField()
    renewed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    quarantine_until = models.DateTimeField(null=True)  # of an abandoned attempt's unknown slot
    released_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=20, blank=True)  # completed, failed, unproven

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["attempt"], condition=Q(released_at=None), name="one_unreleased_lease_per_attempt"
            ),
            models.CheckConstraint(
                condition=Q(state="released", released_at__isnull=False)
                | (~Q(state="released") & Q(released_at=None)),
                name="released_iff_released_at",
            ),
        ]
        indexes = [
            # expiry, recount, and "who holds the slots"
            models.Index(fields=["expires_at"], condition=Q(released_at=None), name="lease_unreleased"),
            models.Index(fields=["channel"], condition=Q(released_at=None), name="lease_of_channel"),
            models.Index(fields=["supply"], condition=Q(released_at=None), name="lease_of_supply"),
            models.Index(fields=["customer"], condition=Q(released_at=None), name="lease_of_customer"),
        ]

    def __str__(self) -> str:
        return self.token


class Occupancy(models.Model):
    """Counted slots of one channel, supply or group; the reconciler proves it equal to the leases."""

    class Kind(models.TextChoices):  # in the order in which rows are locked, everywhere
        GROUP = "a_group"
        CHANNEL = "b_channel"
        SUPPLY = "c_supply"

    kind = models.CharField(max_length=9, choices=Kind)
    subject_id = models.BigIntegerField()
    confirmed = models.IntegerField(default=0)  # live leases
    unknown = models.IntegerField(default=0)

    class Meta:
        verbose_name_plural = "occupancies"
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject_id"], name="one_count_per_subject"),
            models.CheckConstraint(
                condition=Q(confirmed__gte=0) & Q(unknown__gte=0), name="occupancy_never_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}: {self.confirmed} + {self.unknown}"

    @staticmethod
    def total() -> models.expressions.Combinable:
        return F("confirmed") + F("unknown")
