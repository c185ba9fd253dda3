"""When somebody takes a channel out on purpose: who, why, until when, and what then."""

from django.db import models
from django.db.models import F, Q

from catalog.fields import PublicIdField
from catalog.models import Channel


class MaintenanceMode(models.TextChoices):
    DRAIN = "drain"  # nothing new; what runs finishes
    STOP = "stop"  # nothing is sent any more; what was selected and not sent goes elsewhere


class AtEnd(models.TextChoices):
    """What happens at the end time if nobody is there. Nothing becomes healthy by itself."""

    PROBE = "probe"
    STAY_OFF = "stay_off"


class Maintenance(models.Model):
    """One span out of service. But for its end it never changes."""

    public_id = PublicIdField("mnt")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="maintenances")
    mode = models.CharField(max_length=5, choices=MaintenanceMode)
    at_end = models.CharField(max_length=8, choices=AtEnd)
    reason = models.CharField(max_length=300)
    started_at = models.DateTimeField()
    started_by = models.CharField(max_length=150)
    until_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, blank=True)  # a user's name, or "clock"

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel"], condition=Q(ended_at=None), name="one_maintenance_per_channel"
            ),
            models.CheckConstraint(
                condition=Q(until_at__gt=F("started_at")), name="maintenance_ends_after_it_begins"
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, ended_by="") | (Q(ended_at__isnull=False) & ~Q(ended_by="")),
                name="maintenance_ended_iff_by",
            ),
        ]
        indexes = [
            # "was it in maintenance then": the evidence of old selections
            models.Index(fields=["channel", "-started_at"], name="maintenance_of_channel"),
        ]

    def __str__(self) -> str:
        return f"{self.channel} until {self.until_at}"
