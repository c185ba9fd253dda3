"""A customer's sums in the ledger read this index alone; the key's own index begins two others."""

import django.db.models.deletion
from django.db import migrations, models

_OWN = "billing_creditentry_customer_id_8960ea57"


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0007_seldom_lines_of_the_books'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            # By name: altering the field would prove all rows' keys anew.
            database_operations=[migrations.RunSQL(f"DROP INDEX IF EXISTS {_OWN}", f"CREATE INDEX {_OWN} ON billing_creditentry (customer_id)")],
            state_operations=[
                migrations.AlterField(
                    model_name='creditentry',
                    name='customer',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='credit_entries', to='billing.customer'),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name='creditentry',
            index=models.Index(fields=['customer', 'at'], include=('kind', 'currency', 'amount_micros'), name='credit_of_customer_by_day'),
        ),
    ]
