"""Who changed what; append-only by trigger."""

from django.db import models


class AuditEntry(models.Model):
    """One change by a person or a command, with the values before and after (never a secret)."""

    at = models.DateTimeField()
    actor = models.CharField(max_length=150)  # user name, or "command:catalogue import"
    source = models.CharField(max_length=60)  # console, command, or the address it came from
    action = models.CharField(max_length=60)  # verb and noun, e.g. "save channel"
    subject = models.CharField(max_length=120)  # "channel:chn_…"
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    # X-Request-Id of the request that asked for it; empty where a command or the product itself did.
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["subject", "-at"], name="audit_of_subject"
            ),  # "last changed by" on each page
            models.Index(fields=["-at", "-id"], name="audit_newest"),  # the audit page
            models.Index(
                fields=["request_id"], condition=~models.Q(request_id=""), name="audit_of_request"
            ),  # what one request changed
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.subject}"
