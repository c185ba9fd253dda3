"""Selection rounds and provider events are evidence."""

from django.db import migrations

from catalog.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("dispatch", "0001_initial"), ("catalog", "0002_evidence_is_append_only")]
    operations = [AppendOnly("dispatch_selectionround"), AppendOnly("dispatch_providerevent")]
