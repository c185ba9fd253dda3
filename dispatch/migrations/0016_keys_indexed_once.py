"""Keys that begin another index lose their own, which every change of a row wrote too.

By name: altering the fields would drop every index of that column alone, `one_live_attempt_per_job` as well,
and prove all rows' keys anew."""

import django.db.models.deletion
from django.db import migrations, models

_OWN = {  # table and column, by the index's name
    "dispatch_asset_attempt_id_f17f40a7": ("dispatch_asset", "attempt_id"),
    "dispatch_attempt_channel_id_3c5f4139": ("dispatch_attempt", "channel_id"),
    "dispatch_attempt_job_id_6d19b45f": ("dispatch_attempt", "job_id"),
    "dispatch_attempt_supply_id_ab54ad4e": ("dispatch_attempt", "supply_id"),
    "dispatch_job_customer_id_a1b17289": ("dispatch_job", "customer_id"),
    "dispatch_job_public_model_id_e983cebf": ("dispatch_job", "public_model_id"),
    "dispatch_providerevent_attempt_id_013661b3": ("dispatch_providerevent", "attempt_id"),
    "dispatch_providerjob_channel_id_9395d7bf": ("dispatch_providerjob", "channel_id"),
    "dispatch_selectionround_job_id_d6deb14a": ("dispatch_selectionround", "job_id"),
}


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0008_sums_of_a_customer'),
        ('catalog', '0004_audit_entries_name_their_request'),
        ('dispatch', '0015_figures_by_the_hour'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(f"DROP INDEX IF EXISTS {name}", f"CREATE INDEX {name} ON {table} ({column})")
                for name, (table, column) in _OWN.items()
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='asset',
                    name='attempt',
                    field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='assets', to='dispatch.attempt'),
                ),
                migrations.AlterField(
                    model_name='attempt',
                    name='channel',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='catalog.channel'),
                ),
                migrations.AlterField(
                    model_name='attempt',
                    name='job',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='dispatch.job'),
                ),
                migrations.AlterField(
                    model_name='attempt',
                    name='supply',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='catalog.supply'),
                ),
                migrations.AlterField(
                    model_name='job',
                    name='customer',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='billing.customer'),
                ),
                migrations.AlterField(
                    model_name='job',
                    name='public_model',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='catalog.publicmodel'),
                ),
                migrations.AlterField(
                    model_name='providerevent',
                    name='attempt',
                    field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='dispatch.attempt'),
                ),
                migrations.AlterField(
                    model_name='providerjob',
                    name='channel',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='provider_jobs', to='catalog.channel'),
                ),
                migrations.AlterField(
                    model_name='selectionround',
                    name='job',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='rounds', to='dispatch.job'),
                ),
            ],
        ),
    ]
