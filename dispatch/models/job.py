"""A job, its attempts, what the provider knows of them, and why each was chosen.

`db_index=False`: a key that begins another index has none of its own, which every change would write too."""

from django.db import models
from django.db.models import Q

from billing.models import ApiKey, CostRuleVersion, Customer
from catalog.fields import PublicIdField
from catalog.models import CapabilityVersion, Channel, DispatchPolicy, Modality, PublicModel, Supply, Tier
from dispatch.lifecycle import (
    AT_PROVIDER_STATES,
    FINAL_ATTEMPT_STATES,
    FINAL_JOB_STATES,
    AttemptState,
    JobState,
)


def _choices(states: type[JobState] | type[AttemptState]) -> list[tuple[str, str]]:
    return [(state.value, state.value) for state in states]


def _final(states: frozenset[JobState] | frozenset[AttemptState]) -> Q:
    """ "finished_at iff final", as a constraint."""
    final = sorted(state.value for state in states)
    return Q(state__in=final, finished_at__isnull=False) | (~Q(state__in=final) & Q(finished_at=None))


class ServiceClass(models.TextChoices):
    INTERACTIVE = "interactive"
    STANDARD = "standard"
    BATCH = "batch"


class Job(models.Model):
    """What a customer wants: one result."""

    public_id = PublicIdField("job")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="jobs", db_index=False)
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="jobs")
    project = models.CharField(max_length=80, blank=True)  # the customer's own labels
    end_user = models.CharField(max_length=80, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    public_model = models.ForeignKey(
        PublicModel, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    model_revision = models.PositiveIntegerField()
    modality = models.CharField(max_length=5, choices=Modality)
    request = models.JSONField()  # normalized and frozen; holds the prompt
    request_hash = models.CharField(max_length=64)
    content_fingerprint = models.CharField(
        max_length=64, blank=True, default="", db_default=""
    )  # what refusal memory knows it by
    model_choice = models.JSONField(null=True)  # of routing mode auto: what each permitted model would do
    call = models.CharField(max_length=20, default="jobs", db_default="jobs")  # the call that made it
    synchronous = models.BooleanField(
        default=False, db_default=False
    )  # its request's own thread executes it; the scan only ends it at its deadline
    idempotency_key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULLs never collide
    idempotency_hash = models.CharField(max_length=64, blank=True)  # of the body as posted
    first_answer = models.TextField(blank=True)  # to repeat byte for byte; empty while there is none yet
    first_status = models.PositiveSmallIntegerField(default=201, db_default=201)  # of the first answer
    service_class = models.CharField(max_length=11, choices=ServiceClass, default=ServiceClass.STANDARD)

    state = models.CharField(max_length=20, choices=_choices(JobState), default=JobState.QUEUED)
    state_version = models.PositiveIntegerField(default=1)
    dispatch_deadline_at = models.DateTimeField()
    line = models.ForeignKey(
        "Line", null=True, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )  # where it waits in the fair queue; null: not there
    queue_at = models.DateTimeField(null=True)  # its arrival, as its project's priority moves it
    project_priority = models.SmallIntegerField(default=0, db_default=0)  # frozen, of billing.priorities
    estimated_ms = models.PositiveBigIntegerField(
        default=0, db_default=0
    )  # of a provider's time: what it costs in the fair queue; frozen
    next_action_at = models.DateTimeField(null=True)  # when the scan looks at this job by itself; null: never
    waiting = models.JSONField(null=True)  # why such a look chose nobody: {"outcome", "signature"}
    cancel_requested_at = models.DateTimeField(null=True)
    adopted_attempt = models.OneToOneField(
        "Attempt", null=True, on_delete=models.PROTECT, related_name="adopted_by"
    )
    requested_profile = models.CharField(max_length=40, blank=True)
    actual_profile = models.CharField(max_length=40, blank=True)
    dropped_inputs = models.JSONField(default=list)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.CharField(max_length=300, blank=True)  # neutral words for the customer
    max_cost_micros = models.BigIntegerField(null=True)  # the customer's own ceiling
    reserved_micros = models.BigIntegerField(default=0)  # customer's currency
    charged_micros = models.BigIntegerField(default=0)
    provider_cost_micros = models.BigIntegerField(default=0)  # policy's currency; what the attempts cost us
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)  # first attempt selected: the end of queue time
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["customer", "call", "idempotency_key"], name="one_job_per_idempotency_key"
            ),
            models.CheckConstraint(condition=_final(FINAL_JOB_STATES), name="job_finished_iff_final"),
            models.CheckConstraint(
                condition=~Q(state="succeeded") | Q(adopted_attempt__isnull=False),
                name="success_adopts_an_attempt",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in JobState]), name="job_state_known"
            ),
        ]
        indexes = [
            # the one-second scan
            models.Index(
                fields=["next_action_at", "id"], condition=Q(next_action_at__isnull=False), name="job_due"
            ),
            models.Index(
                fields=["line", "end_user", "queue_at", "id"],
                condition=Q(line__isnull=False),
                name="job_in_line",
            ),  # the heads of the fair queue
            models.Index(
                fields=["dispatch_deadline_at"], condition=Q(line__isnull=False), name="job_parked_until"
            ),
            models.Index(fields=["-created_at", "-id"], name="job_newest"),  # the console's list
            models.Index(
                fields=["public_model", "-finished_at"],
                condition=Q(finished_at__isnull=False),
                name="job_ended_of_model",
            ),  # how many need a second supply, and what a success costs
            models.Index(
                fields=["customer", "-created_at", "-id"], name="job_of_customer"
            ),  # the customer's list
            models.Index(
                fields=["public_model", "state", "-created_at"], name="job_of_model"
            ),  # filters of the console's list
            models.Index(
                fields=["state", "-created_at"],
                condition=~Q(state__in=["succeeded", "cancelled"]),
                name="job_of_state",
            ),
            models.Index(
                fields=["-finished_at", "-id"],
                condition=~Q(dropped_inputs=[]) & Q(state="succeeded"),
                name="job_delivered_degraded",
            ),  # the page of degraded deliveries
            models.Index(
                fields=["content_fingerprint"],
                condition=Q(line__isnull=False) | Q(error_code="content_refused"),
                name="job_of_refused_content",
            ),  # whom a refusal record stops, and whom it stopped
        ]

    def __str__(self) -> str:
        return self.public_id


class SelectionRound(models.Model):
    """One run of the selection pipeline with its whole evidence; append-only."""

    public_id = PublicIdField("rnd")
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="rounds", db_index=False)
    attempt_number = models.PositiveSmallIntegerField()
    number = models.PositiveSmallIntegerField()  # runs through the job
    snapshot = models.JSONField()
    outcome = models.CharField(max_length=20)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="one_snapshot_per_round")]
        indexes = [models.Index(fields=["created_at"], name="round_by_time")]  # what an hour selected

    def __str__(self) -> str:
        return self.public_id


class Attempt(models.Model):
    """One immutable decision to execute a job on one supply."""

    public_id = PublicIdField("att")
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    number = models.PositiveSmallIntegerField()
    selection_round = models.OneToOneField(SelectionRound, on_delete=models.PROTECT, related_name="attempt")
    supply = models.ForeignKey(Supply, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    tier = models.CharField(max_length=8, choices=Tier)
    capability_version = models.ForeignKey(CapabilityVersion, on_delete=models.PROTECT)
    cost_rule_version = models.ForeignKey(CostRuleVersion, on_delete=models.PROTECT)
    policy = models.ForeignKey(DispatchPolicy, on_delete=models.PROTECT)
    model_revision = models.PositiveIntegerField()
    sent_request = models.JSONField(null=True)  # the transformed request of a degraded attempt
    compile_plan = models.JSONField()
    client_request_key = models.CharField(max_length=64)  # our reference at the provider
    request_hash = models.CharField(max_length=64)
    quote_micros = models.BigIntegerField()  # policy's currency
    quote_currency = models.CharField(max_length=3)
    channel_epoch = models.PositiveIntegerField(default=0)  # health epochs it was created under
    supply_epoch = models.PositiveIntegerField(default=0)

    state = models.CharField(max_length=20, choices=_choices(AttemptState), default=AttemptState.READY)
    state_version = models.PositiveIntegerField(default=1)
    next_look_at = models.DateTimeField(
        null=True
    )  # poll, fetch, recovery or expiry; null iff nothing is to come
    execution_deadline_at = models.DateTimeField(null=True)
    uncertain_deadline_at = models.DateTimeField(null=True)
    recovery = models.JSONField(default=dict)  # tries so far: {"tries", "absent_at", "sent_by"}
    trace_id = models.CharField(max_length=120, blank=True)  # the provider's own request id
    transport_stage = models.CharField(max_length=20, blank=True)  # where a failed submission broke
    error_category = models.CharField(max_length=10, blank=True)
    error_scope = models.CharField(max_length=10, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.CharField(max_length=500, blank=True)  # for operators, redacted
    retryable = models.BooleanField(default=False)
    cost_micros = models.BigIntegerField(null=True)  # settled, policy's currency
    evidence_at = models.DateTimeField(null=True)  # when it gave its one piece of health evidence
    created_at = models.DateTimeField()
    request_started_at = models.DateTimeField(null=True)
    body_sent_at = models.DateTimeField(null=True)
    accepted_at = models.DateTimeField(null=True)
    generated_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="one_attempt_per_number"),
            models.UniqueConstraint(
                fields=["channel", "client_request_key"], name="one_attempt_per_client_request_key"
            ),
            models.UniqueConstraint(
                fields=["job"],
                condition=~Q(state__in=sorted(state.value for state in FINAL_ATTEMPT_STATES)),
                name="one_live_attempt_per_job",
            ),
            models.CheckConstraint(condition=Q(number__in=[1, 2]), name="two_attempts_at_most"),
            models.CheckConstraint(condition=_final(FINAL_ATTEMPT_STATES), name="attempt_finished_iff_final"),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in AttemptState]), name="attempt_state_known"
            ),
        ]
        indexes = [
            # polls, fetches, recoveries and expiries that are due
            models.Index(
                fields=["state", "next_look_at", "id"],
                condition=Q(next_look_at__isnull=False),
                name="attempt_due",
            ),
            models.Index(
                fields=["supply", "-finished_at"], name="attempt_of_supply"
            ),  # the rolling statistics
            models.Index(
                fields=["supply", "-request_started_at"],
                condition=Q(request_started_at__isnull=False),
                name="attempt_sent_to_supply",
            ),  # how many submissions end unknown
            # what is to be polled, a channel's share of it
            models.Index(
                fields=["channel", "next_look_at", "id"],
                condition=Q(state__in=sorted(state.value for state in AT_PROVIDER_STATES)),
                name="attempt_to_poll",
            ),
            models.Index(
                fields=["job"], condition=Q(number=2), name="second_attempts"
            ),  # the console's filter of jobs that had a switch
        ]

    def __str__(self) -> str:
        return self.public_id


class ProviderJob(models.Model):
    """The external task that the provider knows."""

    attempt = models.OneToOneField(Attempt, on_delete=models.PROTECT, related_name="provider_job")
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, related_name="provider_jobs", db_index=False
    )
    provider_job_id = models.CharField(max_length=300)
    provider_request_id = models.CharField(max_length=120, blank=True)
    raw_status = models.CharField(max_length=80, blank=True)
    status = models.CharField(max_length=20, blank=True)  # normalized; throttled stays distinct
    progress = models.FloatField(null=True)  # 0 to 1
    outputs = models.JSONField(default=list)  # locators; never shown to customers
    outputs_expire_at = models.DateTimeField(null=True)
    raw_failure = models.JSONField(null=True)
    usage = models.JSONField(default=dict)
    polls = models.PositiveIntegerField(default=0)
    quiet_polls = models.PositiveIntegerField(
        default=0, db_default=0
    )  # since the last that said something new
    failed_polls_in_a_row = models.PositiveIntegerField(default=0, db_default=0)
    not_found_in_a_row = models.PositiveSmallIntegerField(default=0)
    submitted_at = models.DateTimeField()
    polled_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "provider_job_id"], name="one_attempt_per_provider_job"
            )
        ]

    def __str__(self) -> str:
        return self.provider_job_id


class SelectionCount(models.Model):
    """How many first attempts a model has selected; every n-th may be a probe."""

    public_model = models.OneToOneField(PublicModel, on_delete=models.CASCADE, related_name="selection_count")
    number = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.public_model}: {self.number}"
