"""The number that tells every process when its in-memory catalogue is stale."""

from django.db import models


class CatalogueRevision(models.Model):
    """One row; `number` grows in every transaction that changes the catalogue."""

    number = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(pk=1), name="catalogue_revision_is_one_row")]

    def __str__(self) -> str:
        return str(self.number)
