"""Audit entries and saved revisions are evidence; a published capability never changes."""

from django.db import migrations

from catalog.append_only import AppendOnly, ImmutableExcept


def first_revision(apps, schema_editor):
    apps.get_model("catalog", "CatalogueRevision").objects.create(pk=1, number=0)


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]
    operations = [
        AppendOnly("catalog_auditentry"),
        AppendOnly("catalog_modelrevision"),
        ImmutableExcept("catalog_capabilityversion", ["effective_to"]),
        ImmutableExcept("catalog_dispatchpolicy", []),
        migrations.RunPython(first_revision, migrations.RunPython.noop),
    ]
