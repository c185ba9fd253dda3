"""What operators keep for themselves: views of lists, supplies to be added, and calls that try one."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from billing.models import CostRuleVersion
from catalog.fields import PublicIdField
from catalog.models import CapabilityVersion, Supply


class SavedView(models.Model):
    """A filtered list under a name: its page and its query string, for its owner or for everybody."""

    public_id = PublicIdField("viw")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    page = models.CharField(max_length=20)  # the name of its URL
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=600)
    is_shared = models.BooleanField(default=False)
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "page", "name"], name="one_view_per_person_page_and_name")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.page}"


class SupplyDraft(models.Model):
    """A supply that somebody is about to add, as typed; nothing live reads it."""

    public_id = PublicIdField("dft")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="supply_drafts")
    typed = models.JSONField(default=dict)  # text by field of dispatch.supply_form
    begun_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.public_id} by {self.user}"


class TrialState(models.TextChoices):
    ASKED = "asked"  # nothing was sent yet
    SENDING = "sending"
    ACCEPTED = "accepted"  # the provider works on it
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the provider took it and did not deliver
    REFUSED = "refused"  # proved not taken
    UNKNOWN = "unknown"  # nobody knows whether the provider took it


class TrialCall(models.Model):
    """One request that an operator sent to a supply to try it: no customer, no job, no slot of ours."""

    public_id = PublicIdField("trl")
    supply = models.ForeignKey(Supply, on_delete=models.PROTECT, related_name="trial_calls")
    capability_version = models.ForeignKey(CapabilityVersion, on_delete=models.PROTECT)
    cost_rule_version = models.ForeignKey(CostRuleVersion, null=True, on_delete=models.PROTECT)
    request = models.JSONField()  # normalized, as a job's
    compile_plan = models.JSONField()
    client_request_key = models.CharField(max_length=64)  # our reference at the provider
    quote_micros = models.BigIntegerField(null=True)  # stated before it was sent; null: no price
    quote_currency = models.CharField(max_length=3, blank=True)
    state = models.CharField(max_length=10, choices=TrialState, default=TrialState.ASKED)
    provider_job_id = models.CharField(max_length=300, blank=True)
    answer = models.JSONField(null=True)  # the provider's last one, redacted
    detail = models.CharField(max_length=500, blank=True)  # our code and words for what went wrong
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)  # of `answer`

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=TrialState.values), name="trial_state_known"),
            models.UniqueConstraint(fields=["client_request_key"], name="one_trial_per_client_request_key"),
        ]
        indexes = [
            # a supply's page, and whether it was tried of late
            models.Index(fields=["supply", "-id"], name="trials_of_supply"),
        ]

    def __str__(self) -> str:
        return f"{self.public_id} at {self.supply}"
