"""The fair queue's memory: who waits for what, whose turn it is, and what was found at the last look.

Counted in the transactions that bring a job into or out of the queue, by `dispatch/queue.py`."""

from django.db import models
from django.db.models import Q

from billing.models import Customer
from catalog.models import PublicModel
from dispatch.models.job import SelectionRound, ServiceClass


class Lot(models.Model):
    """Jobs that one selection decides alike: the same model, shape and demands.

    They are parked together: a look at one of them is a look at all."""

    key = models.CharField(max_length=64, unique=True)  # hash of what makes the decision the same
    public_model = models.ForeignKey(PublicModel, on_delete=models.PROTECT, related_name="lots")
    asks = models.JSONField()  # {"shape", "demands"}, for people
    # What the last look found while nobody could be chosen; blank: not looked at, or jobs could start.
    outcome = models.CharField(max_length=20, blank=True)
    signature = models.CharField(
        max_length=64, blank=True
    )  # of outcome and reasons: a new one is a new round
    round = models.ForeignKey(
        SelectionRound, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )  # its evidence, stored with the job that was looked at for all
    waits_since_at = models.DateTimeField(null=True)  # since when the outcome is not "chosen"
    looked_at = models.DateTimeField(null=True)  # written when it says something new, and every few seconds
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.public_model_id}:{self.key[:12]}"


class TenantQueue(models.Model):
    """One customer's share of one service class: a member of that class's ring."""

    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="queues")
    service_class = models.CharField(max_length=11, choices=ServiceClass)
    waiting = models.IntegerField(default=0)  # jobs in the queue; the sum of its lines'
    deficit_ms = models.BigIntegerField(default=0)  # provider milliseconds it may still take; < 0: a debt
    lap = models.BigIntegerField(default=0)  # of the ring when the deficit was last settled
    is_new = models.BooleanField(default=True)  # came back from having nothing: goes first, once
    returned = models.BooleanField(default=True)  # had nothing waiting since the scan last saw it
    last_end_user = models.CharField(max_length=80, blank=True)  # whose job began last
    held_back = models.CharField(max_length=20, blank=True)  # why the last scan passed it by: tenant_limit
    held_back_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["customer", "service_class"], name="one_queue_per_tenant_and_class"
            ),
            models.CheckConstraint(condition=Q(waiting__gte=0), name="tenant_waiting_never_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.customer_id} {self.service_class}: {self.waiting}"


class Line(models.Model):
    """What one tenant has waiting in one lot and class; the scan's cost is the number of these."""

    lot = models.ForeignKey(Lot, on_delete=models.PROTECT, related_name="lines")
    tenant = models.ForeignKey(TenantQueue, on_delete=models.PROTECT, related_name="lines")
    waiting = models.IntegerField(default=0)  # not in any index: each admission writes it
    is_active = models.BooleanField(default=False)  # waiting > 0
    arrivals = models.BigIntegerField(default=0)  # ever; a watermark found before the last one is not written
    watermark_at = models.DateTimeField()  # no job of the line that may begin stands before it

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["lot", "tenant"], name="one_line_per_lot_and_tenant"),
            models.CheckConstraint(condition=Q(waiting__gte=0), name="line_waiting_never_negative"),
            models.CheckConstraint(
                condition=Q(is_active=True, waiting__gt=0) | Q(is_active=False, waiting=0),
                name="line_active_iff_waiting",
            ),
        ]
        indexes = [
            models.Index(fields=["lot", "tenant"], condition=Q(is_active=True), name="line_active")
        ]  # scan

    def __str__(self) -> str:
        return f"lot {self.lot_id}, tenant {self.tenant_id}: {self.waiting}"


class ClassTurn(models.Model):
    """One service class as a member of the outer ring, and the place of its own ring of tenants."""

    service_class = models.CharField(max_length=11, choices=ServiceClass, unique=True)
    deficit_ms = models.BigIntegerField(default=0)
    has_turn = models.BooleanField(default=False)
    tenant_turn = models.BigIntegerField(default=0)  # the customer at whom the ring stands
    lap = models.BigIntegerField(default=0)  # how often the ring went round

    def __str__(self) -> str:
        return f"{self.service_class}: {self.deficit_ms}"


class ProviderTime(models.Model):
    """How long providers take for one kind of work, of ended attempts; estimates the cost of new jobs."""

    public_model = models.ForeignKey(PublicModel, on_delete=models.PROTECT, related_name="provider_times")
    mode = models.CharField(max_length=20)
    size = models.CharField(max_length=20, blank=True)  # resolution of a video, size of an image
    duration_s = models.DecimalField(max_digits=7, decimal_places=2, default=0)  # 0: an image
    p50_ms = models.PositiveBigIntegerField()  # from acceptance to generation, per sample
    samples = models.PositiveIntegerField()
    refreshed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["public_model", "mode", "size", "duration_s"], name="one_time_per_kind_of_work"
            )
        ]

    def __str__(self) -> str:
        return f"{self.public_model_id} {self.mode} {self.size} {self.duration_s} s: {self.p50_ms} ms"
