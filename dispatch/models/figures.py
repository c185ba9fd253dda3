"""What is counted once and kept for some days, by the hour, so that no page counts what only grows."""

from django.db import models

from catalog.models import PublicModel, Supply, Tier
from dispatch.models.capacity import Occupancy


class HourOfWork(models.Model):
    """What the selections of one hour gave to one binding, and how the attempts that ended in it came out.

    Costs in micros of `currency`, the policy's."""

    hour = models.DateTimeField()  # its begin
    public_model = models.ForeignKey(PublicModel, on_delete=models.CASCADE, related_name="hours_of_work")
    supply = models.ForeignKey(Supply, on_delete=models.CASCADE, related_name="hours_of_work")
    tier = models.CharField(max_length=8, choices=Tier)
    currency = models.CharField(max_length=3)
    picks = models.PositiveIntegerField(default=0)  # attempts that were selected in this hour
    switches = models.PositiveIntegerField(default=0)  # of these: second attempts
    samples = models.PositiveIntegerField(default=0)  # ended in this hour, and count for the rate of success
    successes = models.PositiveIntegerField(default=0)
    ended = models.PositiveIntegerField(default=0)
    delivered = models.PositiveIntegerField(default=0)
    spent_micros = models.BigIntegerField(default=0)  # on all that ended
    wasted_micros = models.BigIntegerField(default=0)  # of it: on those that delivered nothing
    counted_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "hours of work"
        constraints = [
            models.UniqueConstraint(
                fields=["hour", "public_model", "supply", "tier", "currency"],
                name="one_hour_of_work_per_binding",
            )
        ]
        indexes = [
            models.Index(fields=["public_model", "hour"], name="hours_of_model"),
            models.Index(fields=["supply", "hour"], name="hours_of_supply"),
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}: {self.picks} picks of {self.supply_id}"


class HourOfQueue(models.Model):
    """How many jobs waited at most in one hour, looked at once a minute."""

    hour = models.DateTimeField(primary_key=True)  # its begin
    waiting = models.PositiveBigIntegerField()
    seen_at = models.DateTimeField()  # when that many waited

    class Meta:
        verbose_name_plural = "hours of queue"

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}: {self.waiting}"


class PeakOfSlots(models.Model):
    """How many slots of one place were taken at most in one hour, looked at once a minute."""

    kind = models.CharField(max_length=9, choices=Occupancy.Kind)
    subject_id = models.BigIntegerField()
    hour = models.DateTimeField()  # its begin
    taken = models.PositiveIntegerField()
    seen_at = models.DateTimeField()  # when that many were taken

    class Meta:
        verbose_name_plural = "peaks of slots"
        constraints = [
            models.UniqueConstraint(fields=["hour", "kind", "subject_id"], name="one_peak_per_place_and_hour")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}, {self.hour:%Y-%m-%d %H}: {self.taken}"


class PublicationWatch(models.Model):
    """The time right after a publication: what the replay had said, and what came of it.

    Kept for good: how far off forecasts were says how far to trust the next one."""

    public_model = models.ForeignKey(
        PublicModel, on_delete=models.CASCADE, related_name="publication_watches"
    )
    revision = models.PositiveIntegerField()
    instead_of = models.PositiveIntegerField(null=True)  # the revision that was published before
    published_at = models.DateTimeField()
    published_by = models.CharField(max_length=150)
    until_at = models.DateTimeField()  # the watch ends then, or with the next publication
    forecast = models.JSONField(null=True)  # dispatch.forecasts.Forecast; null: not worked out yet
    actual = models.JSONField(null=True)  # dispatch.forecasts.Actual; null: it goes on
    # How far off, once it is over: differences of shares and rates; of the cost, as a part of the forecast.
    share_error = models.FloatField(null=True)
    success_error = models.FloatField(null=True)
    cost_error = models.FloatField(null=True)

    class Meta:
        verbose_name_plural = "publication watches"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(until_at__gte=models.F("published_at")),
                name="publication_watch_ends_after_it_begins",
            )
        ]
        indexes = [
            models.Index(fields=["public_model", "-published_at"], name="watches_of_model"),
            models.Index(
                fields=["until_at"], condition=models.Q(actual__isnull=True), name="watch_going_on"
            ),  # housekeeping
        ]

    def __str__(self) -> str:
        return f"{self.public_model} revision {self.revision} until {self.until_at}"
