from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dispatch", "0012_maintenance_and_giving_up"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(models.Q(("dropped_inputs", []), _negated=True), ("state", "succeeded")),
                fields=["-finished_at", "-id"],
                name="job_delivered_degraded",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(
                    ("line__isnull", False), ("error_code", "content_refused"), _connector="OR"
                ),
                fields=["content_fingerprint"],
                name="job_of_refused_content",
            ),
        ),
    ]
