"""What stands between an operator and a change: working copies, forms that were sent, and who was refused
meanwhile."""

from django.conf import settings
from django.db import models

from catalog.models import PublicModel


class WorkingCopy(models.Model):
    """One person's unsaved edits of one public model; nothing live reads it."""

    public_model = models.ForeignKey(PublicModel, on_delete=models.CASCADE, related_name="working_copies")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="working_copies"
    )
    base_revision = models.PositiveIntegerField()  # that the edits were begun from
    # What each page says that it was typed in; made with the first page, before there is a row.
    key = models.CharField(max_length=40, blank=True, default="", db_default="")
    typed = models.JSONField(default=dict)  # what differs from it, as typed, by dispatch.drafting's fields
    # The page it was typed on, and the how-manieth change there: what an earlier change sent may come later.
    page = models.CharField(max_length=40, blank=True, default="", db_default="")
    step = models.PositiveIntegerField(default=0, db_default=0)
    begun_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "working copies"
        constraints = [
            models.UniqueConstraint(
                fields=["public_model", "user"], name="one_working_copy_per_model_and_person"
            )
        ]

    def __str__(self) -> str:
        return f"{self.public_model} by {self.user}"


class FormReceipt(models.Model):
    """A form that was sent and had its effect: sent again, it is answered the same and changes nothing."""

    key = models.CharField(max_length=40, primary_key=True)  # made with the form
    user = models.CharField(max_length=150)
    went_to = models.CharField(max_length=300)  # the address of the answer
    at = models.DateTimeField(db_index=True)  # housekeeping forgets the old ones

    def __str__(self) -> str:
        return f"{self.key} by {self.user}"


class RefusedMeanwhile(models.Model):
    """How many jobs were refused at the door since the model was last taken out of production."""

    public_model = models.OneToOneField(
        PublicModel, on_delete=models.CASCADE, primary_key=True, related_name="refused_meanwhile"
    )
    jobs = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "refused meanwhile"

    def __str__(self) -> str:
        return f"{self.public_model}: {self.jobs}"
