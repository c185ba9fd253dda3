"""A scheduled price can be cancelled before it begins, and the books are read by days."""

import django.contrib.postgres.constraints
import django.contrib.postgres.fields.ranges
from django.db import migrations, models

from catalog.append_only import ImmutableExcept

_TABLE = "billing_costruleversion"
_BEFORE = ImmutableExcept(_TABLE, ["effective_to"])


class Migration(migrations.Migration):
    dependencies = [("billing", "0004_project_priorities")]
    operations = [
        migrations.AddField(
            "costruleversion", "cancelled_at", models.DateTimeField(blank=True, null=True)
        ),
        migrations.RunSQL(sql=_BEFORE.reverse_sql, reverse_sql=_BEFORE.sql),
        ImmutableExcept(_TABLE, ["effective_to", "cancelled_at"]),
        migrations.RemoveConstraint("costruleversion", "prices_of_a_rule_never_overlap"),
        migrations.AddConstraint(
            "costruleversion",
            django.contrib.postgres.constraints.ExclusionConstraint(
                name="prices_of_a_rule_never_overlap",
                condition=models.Q(cancelled_at=None),
                expressions=[
                    ("rule", "="),
                    (
                        models.Func(
                            models.F("effective_from"),
                            models.F("effective_to"),
                            models.Value("[)"),
                            function="TSTZRANGE",
                            output_field=django.contrib.postgres.fields.ranges.DateTimeRangeField(),
                        ),
                        "&&",
                    ),
                ],
            ),
        ),
        migrations.AddIndex(
            "providerusageentry", models.Index(fields=["at", "id"], name="usage_of_days")
        ),
        migrations.AddIndex("creditentry", models.Index(fields=["at", "id"], name="credit_of_days")),
    ]
