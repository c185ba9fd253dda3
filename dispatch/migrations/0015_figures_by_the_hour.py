import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0003_channel_credential_expires"),
        ("dispatch", "0014_views_drafts_and_trials"),
    ]

    operations = [
        migrations.CreateModel(
            name="HourOfQueue",
            fields=[
                ("hour", models.DateTimeField(primary_key=True, serialize=False)),
                ("waiting", models.PositiveBigIntegerField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={"verbose_name_plural": "hours of queue"},
        ),
        migrations.CreateModel(
            name="HourOfWork",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                (
                    "tier",
                    models.CharField(
                        choices=[("exact", "Exact"), ("fallback", "Fallback"), ("degraded", "Degraded")],
                        max_length=8,
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("picks", models.PositiveIntegerField(default=0)),
                ("switches", models.PositiveIntegerField(default=0)),
                ("samples", models.PositiveIntegerField(default=0)),
                ("successes", models.PositiveIntegerField(default=0)),
                ("ended", models.PositiveIntegerField(default=0)),
                ("delivered", models.PositiveIntegerField(default=0)),
                ("spent_micros", models.BigIntegerField(default=0)),
                ("wasted_micros", models.BigIntegerField(default=0)),
                ("counted_at", models.DateTimeField()),
                (
                    "public_model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hours_of_work",
                        to="catalog.publicmodel",
                    ),
                ),
                (
                    "supply",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hours_of_work",
                        to="catalog.supply",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "hours of work",
                "indexes": [
                    models.Index(fields=["public_model", "hour"], name="hours_of_model"),
                    models.Index(fields=["supply", "hour"], name="hours_of_supply"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "public_model", "supply", "tier", "currency"),
                        name="one_hour_of_work_per_binding",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PeakOfSlots",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("a_group", "Group"), ("b_channel", "Channel"), ("c_supply", "Supply")],
                        max_length=9,
                    ),
                ),
                ("subject_id", models.BigIntegerField()),
                ("hour", models.DateTimeField()),
                ("taken", models.PositiveIntegerField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "peaks of slots",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "kind", "subject_id"), name="one_peak_per_place_and_hour"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PublicationWatch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.PositiveIntegerField()),
                ("instead_of", models.PositiveIntegerField(null=True)),
                ("published_at", models.DateTimeField()),
                ("published_by", models.CharField(max_length=150)),
                ("until_at", models.DateTimeField()),
                ("forecast", models.JSONField(null=True)),
                ("actual", models.JSONField(null=True)),
                ("share_error", models.FloatField(null=True)),
                ("success_error", models.FloatField(null=True)),
                ("cost_error", models.FloatField(null=True)),
                (
                    "public_model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="publication_watches",
                        to="catalog.publicmodel",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "publication watches",
                "indexes": [
                    models.Index(fields=["public_model", "-published_at"], name="watches_of_model"),
                    models.Index(
                        condition=models.Q(("actual__isnull", True)), fields=["until_at"], name="watch_going_on"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("until_at__gte", models.F("published_at"))),
                        name="publication_watch_ends_after_it_begins",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="selectionround",
            index=models.Index(fields=["created_at"], name="round_by_time"),
        ),
    ]
