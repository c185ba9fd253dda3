"""A new customer, with a first deposit where one is given."""

from datetime import datetime

from django.db import transaction

from billing import ledger
from billing.models import Customer, CustomerGroup


def create_customer(
    name: str, now: datetime, *, group: str = "", currency: str = "USD", deposit_micros: int = 0
) -> Customer:
    """The customer of that name; made, with its group and its deposit, where there is none."""
    with transaction.atomic():
        group_row = (
            CustomerGroup.objects.get_or_create(slug=group, defaults={"name": group})[0] if group else None
        )
        customer, made = Customer.objects.get_or_create(
            name=name, defaults={"group": group_row, "currency": currency}
        )
        if made and deposit_micros:
            ledger.deposit(customer, deposit_micros, "first deposit", now)
    customer.refresh_from_db()
    return customer
