"""The console's roles exist from the start, as groups."""

from django.db import migrations

ROLES = ("viewer", "operator", "publisher", "finance", "admin")


def create(apps, schema_editor):
    for name in ROLES:
        apps.get_model("auth", "Group").objects.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("dispatch", "0002_evidence_is_append_only"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    # Backwards it leaves the groups: people may be in them.
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
