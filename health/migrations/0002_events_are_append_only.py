"""Health events and policies are evidence."""

from django.db import migrations

from catalog.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("health", "0001_initial"), ("catalog", "0002_evidence_is_append_only")]
    operations = [AppendOnly("health_healthevent"), AppendOnly("health_healthpolicy")]
