"""What providers told us, what was delivered, and which recurring tasks were answered."""

from datetime import datetime

from django.db import models

from billing.models import Customer
from catalog.fields import PublicIdField
from catalog.models import Channel


class ProviderEvent(models.Model):
    """One answer, callback or look-up, as it came (secrets redacted); append-only."""

    class Kind(models.TextChoices):
        SUBMIT = "submit"
        POLL = "poll"  # kept when it says something new
        CALLBACK = "callback"
        CANCEL = "cancel"
        RECOVER = "recover"
        FETCH = "fetch"

    attempt = models.ForeignKey(
        "dispatch.Attempt", null=True, on_delete=models.PROTECT, related_name="events", db_index=False
    )
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="events")
    kind = models.CharField(max_length=8, choices=Kind)
    outcome = models.CharField(max_length=60)  # accepted, rejected, unknown, a status, found, absent …
    raw = models.JSONField(default=dict)
    event_id = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )  # of a callback: the provider's own, or a hash of the body
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "event_id"],
                condition=~models.Q(event_id=""),
                name="one_event_per_event_id",
            )
        ]
        indexes = [models.Index(fields=["attempt", "id"], name="event_of_attempt")]  # the job page

    def __str__(self) -> str:
        return f"{self.kind}: {self.outcome}"


class RejectedCallback(models.Model):
    """A callback that proved nothing: only the newest are kept, since anybody can send one."""

    provider = models.CharField(max_length=40)  # as called; need not exist
    channel = models.ForeignKey(
        Channel, null=True, on_delete=models.CASCADE, related_name="rejected_callbacks"
    )
    reason = models.CharField(max_length=200)
    size_bytes = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["at", "id"], name="rejected_callback_by_age")]  # trimming

    def __str__(self) -> str:
        return f"{self.provider}: {self.reason}"


class Asset(models.Model):
    """A file in our own storage: a delivered output, or a customer's input."""

    class Kind(models.TextChoices):
        OUTPUT = "output"
        INPUT = "input"

    public_id = PublicIdField("ast")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="assets")
    attempt = models.ForeignKey(
        "dispatch.Attempt", null=True, on_delete=models.PROTECT, related_name="assets", db_index=False
    )
    number = models.PositiveSmallIntegerField(default=1)  # of the attempt's outputs, from 1
    kind = models.CharField(max_length=6, choices=Kind)
    content_type = models.CharField(max_length=60)
    size_bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    width = models.PositiveIntegerField(null=True)  # pixels
    height = models.PositiveIntegerField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)
    path = models.CharField(max_length=300)  # below MEDIA_DIR
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)  # kept until then, as the customer was told; null: for good
    removed_at = models.DateTimeField(null=True)  # the file is gone, the row says what it was

    class Meta:
        indexes = [
            models.Index(
                fields=["expires_at"],
                condition=models.Q(removed_at=None, expires_at__isnull=False),
                name="asset_to_remove",
            )
        ]
        constraints = [
            models.UniqueConstraint(fields=["attempt", "number"], name="one_asset_per_output"),
            models.UniqueConstraint(
                fields=["customer", "sha256"],
                condition=models.Q(kind="input"),
                name="one_input_per_customer_and_checksum",
            ),
            models.CheckConstraint(
                condition=models.Q(kind="input", attempt=None)
                | models.Q(kind="output", attempt__isnull=False),
                name="asset_is_of_an_attempt_iff_output",
            ),
            models.CheckConstraint(condition=models.Q(size_bytes__gt=0), name="asset_not_empty"),
        ]

    def __str__(self) -> str:
        return self.public_id

    def is_expired(self, now: datetime) -> bool:
        return self.removed_at is not None or (self.expires_at is not None and now >= self.expires_at)


class Bell(models.Model):
    """One recurring task that the pulse rings: it waits to be answered from `rung_at` on."""

    name = models.CharField(max_length=20, unique=True)  # of dispatch.pulse.BELLS
    cluster = models.CharField(max_length=20)
    rung_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)  # when a worker last began the task

    def __str__(self) -> str:
        return self.name


class WorkerBeat(models.Model):
    """The last sign of life of one worker process, at a task's start or during it."""

    cluster = models.CharField(max_length=20)
    host = models.CharField(max_length=60)
    pid = models.PositiveIntegerField()
    beat_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "pid"], name="one_beat_per_process")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.pid} on {self.host}"
