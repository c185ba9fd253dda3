from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dispatch", "0010_fair_queue"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("request_started_at__isnull", False)),
                fields=["supply", "-request_started_at"],
                name="attempt_sent_to_supply",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False)),
                fields=["public_model", "-finished_at"],
                name="job_ended_of_model",
            ),
        ),
    ]
