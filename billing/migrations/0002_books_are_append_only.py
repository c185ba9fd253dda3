"""Ledger entries are never changed; a price version may only be ended."""

from django.db import migrations

from catalog.append_only import AppendOnly, ImmutableExcept


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial"), ("catalog", "0002_evidence_is_append_only")]
    operations = [
        AppendOnly("billing_providerusageentry"),
        AppendOnly("billing_creditentry"),
        ImmutableExcept("billing_costruleversion", ["effective_to"]),
        ImmutableExcept("billing_currencyrateversion", []),
    ]
