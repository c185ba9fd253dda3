"""Who among the operators is on an uncertain attempt, so that two do not decide it against each other, and
who would give it up."""

from django.db import models


class DeskClaim(models.Model):
    """One operator works on one attempt until `until_at`; taking over replaces it."""

    attempt = models.OneToOneField("dispatch.Attempt", on_delete=models.CASCADE, related_name="desk_claim")
    operator = models.CharField(max_length=150)  # a user's name
    until_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.operator} on {self.attempt}"


class GivingUp(models.Model):
    """One operator says that an attempt cannot be found out; over the limit a second one has to as well."""

    attempt = models.OneToOneField("dispatch.Attempt", on_delete=models.CASCADE, related_name="giving_up")
    operator = models.CharField(max_length=150)  # a user's name
    reason = models.CharField(max_length=500)
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "givings up"

    def __str__(self) -> str:
        return f"{self.operator} gives up {self.attempt}"
