"""What is remembered of channels and supplies, of refused content, and what operators must know."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from catalog.fields import PublicIdField
from catalog.models import CapacityGroup, Channel, Supply
from health.circuit import State, Subject
from health.refusals import FROZEN_AT_REFUSALS

STATES = [state.value for state in State]
SUBJECTS = [subject.value for subject in Subject]


class CircuitRow(models.Model):
    """One circuit as `health.circuit` left it; written under row lock only."""

    state = models.CharField(
        max_length=12, choices=[(state, state) for state in STATES], default=State.HEALTHY.value
    )
    version = models.PositiveIntegerField(default=0)  # grows with each write
    epoch = models.PositiveIntegerField(default=0)
    recovery_successes = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)  # in a row
    successes = models.PositiveIntegerField(default=0)  # since the last failure, while degraded
    openings = models.PositiveIntegerField(default=0)  # place on the cooldown ladder
    cooldown_until = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(null=True)  # since when it is in this state; empty: always
    # Told by a provider's Retry-After, not by the circuit: no slot before then.
    not_before = models.DateTimeField(null=True)
    not_before_code = models.CharField(max_length=40, blank=True)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(condition=Q(state__in=STATES), name="%(class)s_state_known"),
            models.CheckConstraint(
                condition=Q(state="circuit_open", cooldown_until__isnull=False)
                | (~Q(state="circuit_open") & Q(cooldown_until=None)),
                name="%(class)s_cools_down_iff_open",
            ),
            models.CheckConstraint(
                condition=Q(state="recovering", recovery_successes__in=(2, 3, 4))
                | Q(state="probing", recovery_successes__lte=1)
                | (~Q(state__in=("probing", "recovering")) & Q(recovery_successes=0)),
                name="%(class)s_successes_fit_state",
            ),
        ]
        indexes = [
            # the reconciler's look: which cooldowns have passed
            models.Index(
                fields=["cooldown_until"], condition=Q(state="circuit_open"), name="%(class)s_cooling"
            ),
        ]


class ChannelHealth(CircuitRow):
    """The circuit of a channel. No row: healthy, and nothing happened yet."""

    channel = models.OneToOneField(Channel, on_delete=models.PROTECT, primary_key=True, related_name="health")
    correlations = models.JSONField(default=list)  # [[seconds, code, supply], …] of the last minute

    class Meta(CircuitRow.Meta):
        verbose_name_plural = "channel health"

    def __str__(self) -> str:
        return f"{self.channel}: {self.state}"


class SupplyHealth(CircuitRow):
    """The circuit of a supply. No row: healthy, and nothing happened yet."""

    supply = models.OneToOneField(Supply, on_delete=models.PROTECT, primary_key=True, related_name="health")
    window = models.JSONField(default=list)  # [[seconds, failures, successes], …] of the last two minutes

    class Meta(CircuitRow.Meta):
        verbose_name_plural = "supply health"

    def __str__(self) -> str:
        return f"{self.supply}: {self.state}"


class GroupPressure(models.Model):
    """Capacity errors of the channels of one group, and the pause they led to."""

    group = models.OneToOneField(
        CapacityGroup, on_delete=models.CASCADE, primary_key=True, related_name="pressure"
    )
    presses = models.JSONField(default=list)  # [[time, channel id], …] of the last minute
    not_before = models.DateTimeField(null=True)  # no new attempt in the group before then
    probing = models.BooleanField(default=False)  # one attempt probes it, until `not_before`

    def __str__(self) -> str:
        return f"{self.group}: not before {self.not_before}"


class HealthEvent(models.Model):
    """One change of a circuit, with what it was decided from; append-only. Replaying them gives the row."""

    public_id = PublicIdField("hev")
    at = models.DateTimeField()
    subject = models.CharField(max_length=7, choices=[(subject, subject) for subject in SUBJECTS])
    subject_id = models.BigIntegerField()  # of the channel or supply
    from_state = models.CharField(max_length=12)
    to_state = models.CharField(max_length=12)
    cause = models.CharField(max_length=30)  # which rule fired: health.circuit.Cause
    recovery_successes = models.PositiveIntegerField()  # after it
    epoch = models.PositiveIntegerField()  # after it
    cooldown_until = models.DateTimeField(null=True)  # after it
    attempt = models.CharField(max_length=40, blank=True)  # public id of the attempt that gave the evidence
    actor = models.CharField(max_length=150, blank=True)  # who, when a person did it
    reason = models.CharField(max_length=300, blank=True)
    evidence = models.JSONField()  # the piece, as health.replay reads it
    before = models.JSONField()  # the whole circuit that the piece met
    parameters = models.JSONField()  # those in force

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(subject__in=SUBJECTS), name="health_event_subject_known"),
            models.CheckConstraint(
                condition=Q(from_state__in=STATES, to_state__in=STATES), name="health_event_states_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["subject", "subject_id", "-id"], name="health_events_of_subject"
            ),  # timeline
            models.Index(fields=["-id"], name="health_events_newest"),
            # filters of the log, which is read through for what is seldom
            models.Index(fields=["to_state", "-id"], name="health_events_to_state"),
            models.Index(fields=["cause", "-id"], name="health_events_of_cause"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.subject_id}: {self.from_state} → {self.to_state}, {self.cause}"


class HealthPolicy(models.Model):
    """Parameters from a time on: of the installation, of one channel, or of one supply. The newest holds."""

    public_id = PublicIdField("hpo")
    channel = models.ForeignKey(Channel, null=True, on_delete=models.PROTECT, related_name="health_policies")
    supply = models.ForeignKey(Supply, null=True, on_delete=models.PROTECT, related_name="health_policies")
    version = models.PositiveIntegerField()
    parameters = models.JSONField(default=dict)  # only those that differ, as health.parameters reads them
    saved_by = models.CharField(max_length=150)
    saved_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "health policies"
        constraints = [
            models.CheckConstraint(
                condition=Q(channel=None) | Q(supply=None), name="health_policy_of_one_subject_at_most"
            ),
            models.UniqueConstraint(
                fields=["channel", "supply", "version"],
                nulls_distinct=False,
                name="one_health_policy_per_version",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.channel or self.supply or 'installation'}, version {self.version}"


# Refusal records that `health.refusals` calls frozen: where count or time is missing, nobody can tell.
FROZEN = Q(refusals=None) | Q(refused_at=None) | Q(refusals__gte=FROZEN_AT_REFUSALS)


class RefusalRecord(models.Model):
    """What a provider refused on content grounds, and when it may be probed again."""

    public_id = PublicIdField("ref")
    fingerprint = models.CharField(max_length=64)  # keyed hash of the content; never the content
    provider = models.CharField(max_length=40)
    model_family = models.CharField(max_length=80)
    supply = models.ForeignKey(
        Supply, null=True, on_delete=models.PROTECT, related_name="refusal_records"
    )  # set: after a boundary of that supply
    versions = models.JSONField(default=dict)  # supply id -> its version when this record first held for it
    refusals = models.PositiveIntegerField(null=True)  # real ones; missing counts as frozen
    refused_at = models.DateTimeField(null=True)  # the last real one; missing counts as frozen
    last_refused_attempt = models.CharField(max_length=40, blank=True)
    probe = models.CharField(max_length=40, blank=True)  # public id of the attempt that holds the re-probe
    frozen_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, blank=True)  # the operator who lifted it, or the attempt
    ended_why = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint", "provider", "model_family", "supply"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
                name="one_refusal_record_per_key",
            ),
            models.CheckConstraint(
                condition=Q(refusals=None) | Q(refusals__gte=1), name="refusals_at_least_1"
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, ended_why="") | (Q(ended_at__isnull=False) & ~Q(ended_why="")),
                name="refusal_ended_iff_why",
            ),
        ]
        indexes = [
            # settling the attempt that probes
            models.Index(fields=["probe"], condition=~Q(probe=""), name="refusal_probes"),
            models.Index(fields=["-id"], condition=Q(ended_at=None), name="refusals_newest"),  # the page
            models.Index(
                fields=["-ended_at"], condition=Q(ended_at__isnull=False), name="refusals_ended"
            ),  # the last one, where none holds
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model_family} {self.fingerprint[:8]}"


class Severity(models.TextChoices):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class AlertQuerySet(models.QuerySet["Alert"]):
    def unresolved(self) -> "AlertQuerySet":
        return self.filter(resolved_at=None)

    def needing_acknowledgement(self) -> "AlertQuerySet":
        """Critical ones, also those that ended by themselves: they stay in the header until acknowledged."""
        return self.filter(severity=Severity.CRITICAL, acknowledged_at=None)


class Alert(models.Model):
    """A condition that an operator must know; carries ids and numbers, never prompts or secrets."""

    public_id = PublicIdField("alr")
    code = models.CharField(max_length=40)  # of health.alerts.SEVERITIES
    severity = models.CharField(max_length=8, choices=Severity)
    subject = models.CharField(max_length=120)  # "channel:slug", "attempt:att_…", "model:slug"
    dedupe_key = models.CharField(max_length=200)
    details = models.JSONField(default=dict)
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=1)  # how often it was seen
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    note = models.CharField(max_length=500, blank=True)
    # Kept when the alert is raised again, which takes the acknowledgement itself away; empty until then.
    first_acknowledged_at = models.DateTimeField(null=True)
    first_acknowledged_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    first_note = models.CharField(max_length=500, blank=True, default="", db_default="")
    reraised_at = models.DateTimeField(null=True)  # the last time
    reraises = models.PositiveIntegerField(default=0, db_default=0)  # how often
    resolved_at = models.DateTimeField(null=True)
    resolved_why = models.CharField(max_length=300, blank=True)

    objects = AlertQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["dedupe_key"], condition=Q(resolved_at=None), name="one_open_alert_per_key"
            ),
            models.CheckConstraint(condition=Q(severity__in=Severity.values), name="alert_severity_known"),
            models.CheckConstraint(condition=Q(count__gte=1), name="alert_seen_at_least_once"),
            models.CheckConstraint(
                condition=Q(last_seen_at__gte=F("opened_at")), name="alert_last_seen_after_opened"
            ),
            models.CheckConstraint(
                condition=Q(acknowledged_at=None, acknowledged_by="")
                | (Q(acknowledged_at__isnull=False) & ~Q(acknowledged_by="")),
                name="alert_acknowledged_iff_by",
            ),
            models.CheckConstraint(
                condition=Q(
                    reraises=0, reraised_at=None, first_acknowledged_at=None, first_acknowledged_by=""
                )
                | Q(reraises__gte=1, reraised_at__isnull=False, first_acknowledged_at__isnull=False)
                & ~Q(first_acknowledged_by=""),
                name="alert_reraised_after_an_acknowledgement",
            ),
            models.CheckConstraint(
                condition=Q(resolved_at=None, resolved_why="")
                | (Q(resolved_at__isnull=False) & ~Q(resolved_why="")),
                name="alert_resolved_iff_why",
            ),
        ]
        indexes = [
            # the header of every page
            models.Index(
                fields=["-id"],
                condition=Q(severity="critical", acknowledged_at=None),
                name="alert_header",
            ),
            models.Index(fields=["-id"], condition=Q(resolved_at=None), name="alert_unresolved"),
            models.Index(fields=["-resolved_at"], name="alert_resolved"),  # "resolved in the last 24 h"
            models.Index(fields=["subject", "-id"], name="alert_of_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.severity} {self.code} {self.subject}"


class AlertDelivery(models.Model):
    """One message about an alert to one target, on its way until it arrived or was given up."""

    class Means(models.TextChoices):
        WEBHOOK = "webhook"
        EMAIL = "email"

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        GIVEN_UP = "given_up"

    public_id = PublicIdField("ald")
    alert = models.ForeignKey(Alert, on_delete=models.PROTECT, related_name="deliveries")
    means = models.CharField(max_length=7, choices=Means)
    target = models.CharField(max_length=300)  # address or URL
    # 0: it tells of the opening; n: that the alert was raised again for the n-th time
    reraise = models.PositiveIntegerField(default=0, db_default=0)
    state = models.CharField(max_length=9, choices=State, default=State.PENDING)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "alert deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "means", "target", "reraise"], name="one_delivery_per_target"
            ),
            models.CheckConstraint(
                condition=Q(state="pending", next_try_at__isnull=False)
                | (~Q(state="pending") & Q(next_try_at=None)),
                name="delivery_has_next_try_iff_pending",
            ),
            models.CheckConstraint(
                condition=Q(state="delivered", delivered_at__isnull=False)
                | (~Q(state="delivered") & Q(delivered_at=None)),
                name="delivered_iff_delivered_at",
            ),
        ]
        indexes = [
            models.Index(fields=["next_try_at"], condition=Q(state="pending"), name="delivery_due"),
        ]

    def __str__(self) -> str:
        return f"{self.means} to {self.target}: {self.state}"


class AlertSubscription(models.Model):
    """A person's wish to be told of alerts by mail, beside the installation's own targets."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="alert_subscription"
    )
    address = models.EmailField()
    only_critical = models.BooleanField()

    def __str__(self) -> str:
        return f"{self.user}: {self.address}"
