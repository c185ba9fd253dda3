"""A customer's sums in the ledger read this index alone; the key's own index begins two others."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0007_seldom_lines_of_the_books'),
    ]

    operations = [
        migrations.AlterField(
            model_name='creditentry',
            name='customer',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='credit_entries', to='billing.customer'),
        ),
        migrations.AddIndex(
            model_name='creditentry',
            index=models.Index(fields=['customer', 'at'], include=('kind', 'currency', 'amount_micros'), name='credit_of_customer_by_day'),
        ),
    ]
