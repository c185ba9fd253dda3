"""An operator adds credit to a customer's account."""

from datetime import datetime

from django.db import transaction

from billing import ledger
from billing.models import CreditEntry, Customer
from billing.money import written
from catalog.audit import Actor, Change, record


@transaction.atomic
def credit_customer(
    customer: Customer, amount_micros: int, note: str, *, actor: Actor, now: datetime
) -> CreditEntry:
    """In the customer's currency. Raises ValueError for an amount that is not positive."""
    entry = ledger.deposit(customer, amount_micros, note, now)
    after = {"deposit": written(amount_micros), "currency": customer.currency, "note": note}
    record(actor, Change("deposit credit", f"customer:{customer.public_id}", after=after), now)
    return entry
