import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import catalog.fields


class Migration(migrations.Migration):
    dependencies = [
        ("billing", "0005_cancelled_prices_and_days_of_the_books"),
        ("catalog", "0003_channel_credential_expires"),
        ("dispatch", "0013_indexes_of_degraded_and_refused_jobs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", catalog.fields.PublicIdField("viw")),
                ("page", models.CharField(max_length=20)),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=600)),
                ("is_shared", models.BooleanField(default=False)),
                ("saved_at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "page", "name"), name="one_view_per_person_page_and_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SupplyDraft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", catalog.fields.PublicIdField("dft")),
                ("typed", models.JSONField(default=dict)),
                ("begun_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="supply_drafts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TrialCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", catalog.fields.PublicIdField("trl")),
                ("request", models.JSONField()),
                ("compile_plan", models.JSONField()),
                ("client_request_key", models.CharField(max_length=64)),
                ("quote_micros", models.BigIntegerField(null=True)),
                ("quote_currency", models.CharField(blank=True, max_length=3)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("asked", "Asked"),
                            ("sending", "Sending"),
                            ("accepted", "Accepted"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("refused", "Refused"),
                            ("unknown", "Unknown"),
                        ],
                        default="asked",
                        max_length=10,
                    ),
                ),
                ("provider_job_id", models.CharField(blank=True, max_length=300)),
                ("answer", models.JSONField(null=True)),
                ("detail", models.CharField(blank=True, max_length=500)),
                ("asked_by", models.CharField(max_length=150)),
                ("asked_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "capability_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="catalog.capabilityversion"
                    ),
                ),
                (
                    "cost_rule_version",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="billing.costruleversion",
                    ),
                ),
                (
                    "supply",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trial_calls",
                        to="catalog.supply",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["supply", "-id"], name="trials_of_supply")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "asked",
                                    "sending",
                                    "accepted",
                                    "succeeded",
                                    "failed",
                                    "refused",
                                    "unknown",
                                ],
                            )
                        ),
                        name="trial_state_known",
                    ),
                    models.UniqueConstraint(
                        fields=("client_request_key",), name="one_trial_per_client_request_key"
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(condition=models.Q(("number", 2)), fields=["job"], name="second_attempts"),
        ),
    ]
