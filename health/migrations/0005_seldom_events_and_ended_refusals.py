"""The log of health events is filtered by what is seldom; the page of refusals tells which one ended last."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0004_audit_entries_name_their_request'),
        ('health', '0004_alerts_are_raised_again'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='healthevent',
            index=models.Index(fields=['to_state', '-id'], name='health_events_to_state'),
        ),
        migrations.AddIndex(
            model_name='healthevent',
            index=models.Index(fields=['cause', '-id'], name='health_events_of_cause'),
        ),
        migrations.AddIndex(
            model_name='refusalrecord',
            index=models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['-ended_at'], name='refusals_ended'),
        ),
    ]
