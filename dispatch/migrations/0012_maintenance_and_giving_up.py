import django.db.models.deletion
from django.db import migrations, models

import catalog.fields


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0003_channel_credential_expires"),
        ("dispatch", "0011_indexes_of_recent_rates"),
    ]

    operations = [
        migrations.CreateModel(
            name="GivingUp",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("operator", models.CharField(max_length=150)),
                ("reason", models.CharField(max_length=500)),
                ("at", models.DateTimeField()),
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="giving_up",
                        to="dispatch.attempt",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "givings up",
            },
        ),
        migrations.CreateModel(
            name="Maintenance",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", catalog.fields.PublicIdField("mnt")),
                ("mode", models.CharField(choices=[("drain", "Drain"), ("stop", "Stop")], max_length=5)),
                (
                    "at_end",
                    models.CharField(choices=[("probe", "Probe"), ("stay_off", "Stay Off")], max_length=8),
                ),
                ("reason", models.CharField(max_length=300)),
                ("started_at", models.DateTimeField()),
                ("started_by", models.CharField(max_length=150)),
                ("until_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(blank=True, max_length=150)),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="maintenances",
                        to="catalog.channel",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["channel", "-started_at"], name="maintenance_of_channel")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("channel",),
                        name="one_maintenance_per_channel",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("until_at__gt", models.F("started_at"))),
                        name="maintenance_ends_after_it_begins",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("ended_by", "")),
                            models.Q(("ended_at__isnull", False), models.Q(("ended_by", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="maintenance_ended_iff_by",
                    ),
                ],
            },
        ),
    ]
